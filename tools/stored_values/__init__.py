"""What kube-apiserver stores in etcd beside what this server stores: the same objects, their keys and their values."""
