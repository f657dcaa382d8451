"""Several servers on one etcd, of this project and kube-apiserver, behind one address (`python -m tools.one_etcd`)."""
