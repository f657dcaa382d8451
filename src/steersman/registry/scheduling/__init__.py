"""The resources of scheduling.k8s.io."""
