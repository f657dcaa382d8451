"""Deletes what is in namespaces that are being deleted (pkg/controller/namespace)."""
