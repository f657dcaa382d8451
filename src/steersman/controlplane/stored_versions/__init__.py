"""Stored versions of built-in kinds while servers of several releases share one store."""
