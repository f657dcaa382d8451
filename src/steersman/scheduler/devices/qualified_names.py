"""Qualified names of attributes and capacities of devices."""

from __future__ import annotations


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Return domain and name of an attribute; the default domain is that of its driver."""
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)
