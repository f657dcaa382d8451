"""Kubernetes' own conformance tests of the API."""
