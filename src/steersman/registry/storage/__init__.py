"""The resources of storage.k8s.io."""
