"""`kube-apiserver` and `etcd` for tools that start these two for a test (see docs/envtest.md)."""
