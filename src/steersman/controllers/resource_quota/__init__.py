"""Tells quotas what is used of them (pkg/controller/resourcequota)."""
