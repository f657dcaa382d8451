"""Aggregated servers behind two API servers: Kubernetes' sample-apiserver, and one that fails in many ways."""
