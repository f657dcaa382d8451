"""Servers that a Kubernetes passes requests on to: what these ask of it, and by what it trusts them."""
