"""Formatting of durations for people."""

from __future__ import annotations


def in_hours(seconds: float) -> str:
    """Return `12s`, `3m4s`, `2h5m` or `49h`: at most two units, none longer than hours, so that Go can parse it."""
    whole = int(seconds)
    if whole < 86400:
        return in_words(whole)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}h{minutes}m" if minutes else f"{hours}h"


def in_words(seconds: float) -> str:
    """Return `12s`, `3m4s`, `2h5m` or `3d4h`: at most two units, as kubectl prints ages."""
    whole = int(seconds)
    for unit, small, name, smaller in ((86400, 3600, "d", "h"), (3600, 60, "h", "m"), (60, 1, "m", "s")):
        if whole >= unit:
            rest = whole % unit // small
            return f"{whole // unit}{name}" + (f"{rest}{smaller}" if rest else "")
    return f"{whole}s"
