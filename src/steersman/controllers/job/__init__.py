"""Jobs: pods that run until enough of them have succeeded (pkg/controller/job)."""
