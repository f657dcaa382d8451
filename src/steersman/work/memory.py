"""Memory that has been freed and is still the process's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache


@lru_cache(maxsize=1)
def _trim() -> Callable[[int], int] | None:
    """glibc's malloc_trim; None with another C library."""
    import ctypes  # which a server at rest never needs

    if not sys.platform.startswith("linux"):
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def give_memory_back() -> None:
    """Gives free memory back to the system, where the C library can: it keeps what lies between pieces in use.

    Takes some 0.15 ms for each MB, without the interpreter. Others who need memory wait for a part of that.
    """
    trim = _trim()
    if trim is not None:
        trim(0)
