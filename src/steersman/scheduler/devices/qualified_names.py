"""Names of attributes and capacities of devices, which have a domain."""

from __future__ import annotations


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and name of an attribute; one without a domain is in that of its driver."""
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)
