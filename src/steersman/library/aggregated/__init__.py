"""Servers behind a Kubernetes cluster: their requests to the cluster, and their trust in it."""
