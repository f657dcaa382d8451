"""Encryption at rest: what is stored is sealed by providers that a file names, as kube-apiserver seals it in etcd."""
