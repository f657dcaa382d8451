"""The resources of apps: workloads that keep pods running."""
