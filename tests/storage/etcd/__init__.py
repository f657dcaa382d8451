"""Storage on etcd: tests beyond the contract."""
