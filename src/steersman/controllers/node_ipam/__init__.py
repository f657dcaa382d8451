"""Allocation of pod address blocks to nodes (pkg/controller/nodeipam)."""
