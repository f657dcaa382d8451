"""The resources of certificates.k8s.io."""
