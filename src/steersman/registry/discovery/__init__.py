"""Endpoint slices of discovery.k8s.io."""
