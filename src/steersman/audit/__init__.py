"""The audit trail: what is recorded of requests, and where it goes (k8s.io/apiserver `audit` and its plugins)."""
