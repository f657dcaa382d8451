"""Storage on etcd: what is not in the contract."""
