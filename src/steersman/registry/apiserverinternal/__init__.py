"""Kinds that API servers keep for each other."""
