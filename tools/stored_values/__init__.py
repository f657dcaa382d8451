"""Comparison of the keys and values that kube-apiserver and this server store in etcd for the same objects."""
