"""Roles and bindings of rbac.authorization.k8s.io."""
