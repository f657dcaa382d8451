"""Seat-seconds, the unit of work: seats times the time for which they are taken, in whole hundred-millionths."""

from __future__ import annotations

from typing import Final

SCALE: Final = 100_000_000
"""Units in one second of one seat."""


def seat_seconds(seats: float, seconds: float) -> int:
    """The work of so many seats for so long, rounded."""
    return round(seats * seconds * SCALE)


def as_text(work: int) -> str:
    """As dumps show it: `0.00300000ss`."""
    whole, rest = divmod(work, SCALE)
    return f"{whole}.{rest:08d}ss"
