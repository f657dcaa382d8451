"""Usage in the status of quotas (pkg/controller/resourcequota)."""
