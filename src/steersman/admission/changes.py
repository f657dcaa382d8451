"""Differences between two states of an object, as the paths of the fields that differ: values are not told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

MOST_PATHS: Final = 20
_LARGE: Final = 32 << 10
"""Bytes of an object above which its changes are not looked for."""


_FEW: Final = 16 << 10
"""Bytes of two states whose differences are computed when they are read."""


class Changes:
    """Paths of the fields that differ between two states of an object; `str` computes them."""

    def __init__(self, before: bytes, after: bytes) -> None:
        self._text = ""
        self._states: tuple[bytes, bytes] | None = (before, after)
        if len(before) + len(after) > _FEW:
            str(self)

    def __str__(self) -> str:
        if self._states is not None:
            self._text = " ".join(changed_paths(*self._states))
            self._states = None
        return self._text


def document(obj: Any) -> bytes | None:
    """Return the JSON of an object, to be compared; None without an object, and for a large one."""
    if obj is None:
        return None
    try:
        data = msgspec.json.encode(obj)
    except (TypeError, ValueError):
        return None  # an object that only its kind can encode
    return data if len(data) <= _LARGE else None


def changed_paths(before: bytes, after: bytes) -> list[str]:
    """Return the paths of the fields that differ, at most MOST_PATHS; elements of lists have their index."""
    return list(islice(_differences(msgspec.json.decode(before), msgspec.json.decode(after), ""), MOST_PATHS))


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _differences(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            yield from _differences(_at(before, index), _at(after, index), f"{path}[{index}]")
    else:
        yield path


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
