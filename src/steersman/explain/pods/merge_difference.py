"""The merge patch (RFC 7386) that turns one JSON object into another."""

from __future__ import annotations

from typing import Any


def merge_difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch from `old` to `new`, {} if they are equal. Lists are replaced as a whole."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = merge_difference(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or value != before:
            patch[key] = value
    return patch
