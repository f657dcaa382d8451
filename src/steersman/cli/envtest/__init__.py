"""`kube-apiserver` and `etcd` for test tools that start these two programs (see docs/envtest.md)."""
