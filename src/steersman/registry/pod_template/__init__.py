"""Pods and pod templates: defaults, validation, warnings and columns that pods and all workloads share."""
