"""Checks of manifests: what an API server would say to them, without a cluster."""
