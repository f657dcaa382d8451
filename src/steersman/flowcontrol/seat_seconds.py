"""Seat-seconds, the unit of work: seats times seconds, in integral units of 10 nanoseconds."""

from __future__ import annotations

from typing import Final

SCALE: Final = 100_000_000
"""Units in one seat-second."""


def seat_seconds(seats: float, seconds: float) -> int:
    """Return the work of seats for seconds, rounded to units."""
    return round(seats * seconds * SCALE)


def as_text(work: int) -> str:
    """Return work as dumps show it: `0.00300000ss`."""
    whole, rest = divmod(work, SCALE)
    return f"{whole}.{rest:08d}ss"
