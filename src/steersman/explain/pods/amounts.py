"""Amounts of resources as text, from the integers that the scheduler counts with."""

from __future__ import annotations

from typing import Final

from steersman.machinery.validation.resource_names import is_huge_page_resource

_BINARY: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_BYTES: Final = ("memory", "ephemeral-storage")


def amount_text(resource: str, amount: int) -> str:
    """Return the exact quantity of an amount: thousandths of CPU, bytes, or the resource's own units."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if amount and (resource in _BYTES or is_huge_page_resource(resource)):
        for suffix, unit in _BINARY:
            if amount % unit == 0:
                return f"{amount // unit}{suffix}"
    return str(amount)
