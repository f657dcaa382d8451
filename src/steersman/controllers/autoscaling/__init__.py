"""Scales workloads by what is measured of them (pkg/controller/podautoscaler)."""
