// etcd for the tests that want one: `make etcd` builds it, etcdctl and etcdutl at the version that go.mod pins.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
