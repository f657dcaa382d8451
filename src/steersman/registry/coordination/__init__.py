"""Leases of coordination.k8s.io."""
