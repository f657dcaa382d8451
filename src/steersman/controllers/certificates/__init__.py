"""Certificates that are asked for: approved, signed, and forgotten (pkg/controller/certificates)."""
