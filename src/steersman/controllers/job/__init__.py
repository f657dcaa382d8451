"""Controller of Jobs (pkg/controller/job)."""
