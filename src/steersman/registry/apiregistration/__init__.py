"""The resources of apiregistration.k8s.io."""
