"""Kinds that API servers store for each other."""
