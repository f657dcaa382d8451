"""Pods and their templates, as pods themselves and all workloads have them: defaults, rules, warnings, columns."""
