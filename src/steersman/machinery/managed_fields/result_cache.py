"""Bounded caches of results about field ownership."""

from __future__ import annotations

from typing import Any, Final

from steersman.work.bounded_cache import BoundedCache

_MOST: Final = 128
"""The most results in a cache, which belongs to one kind in one version."""
_ROOM: Final = 2 << 20
"""The approximate size of a cache in bytes; a single result may take a sixteenth."""


def result_cache() -> BoundedCache[Any, Any]:
    """Return a cache of results by their inputs. It is bounded in every way, because clients choose the inputs."""
    return BoundedCache(_MOST, _ROOM, max_entry_bytes=_ROOM // 16)
