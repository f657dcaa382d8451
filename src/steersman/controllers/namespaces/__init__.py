"""Deletion of namespaces with all their content (pkg/controller/namespace)."""
