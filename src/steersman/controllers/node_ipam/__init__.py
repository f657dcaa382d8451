"""Gives each node addresses for its pods (pkg/controller/nodeipam)."""
