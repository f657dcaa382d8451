"""Audit trail: policy, events and backends (k8s.io/apiserver `audit` and its plugins)."""
