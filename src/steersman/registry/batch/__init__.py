"""The resources of batch: workloads that run to completion."""
