"""Servers made with the library."""
