"""Results of work on ownership that comes again and again, kept within bounds."""

from __future__ import annotations

from typing import Any, Final

from steersman.work.bounded_cache import BoundedCache

_MOST: Final = 128
"""Results that are kept of one kind in one version."""
_ROOM: Final = 2 << 20
"""Bytes that they take together, about; one may take a sixteenth."""


def remembered() -> BoundedCache[Any, Any]:
    """Return a cache of results by what they were made of. Clients choose what that is, so all of it is bounded."""
    return BoundedCache(_MOST, _ROOM, max_entry_bytes=_ROOM // 16)
