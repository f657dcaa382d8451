"""The resources of networking.k8s.io."""
