"""Differences between two states of an object, as the paths of the fields that differ: values are not told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec

from steersman.machinery.go.strings import to_upper

MOST_PATHS: Final = 20
_LARGE: Final = 32 << 10
"""Bytes of an object above which its changes are not looked for."""


encode: Final = msgspec.json.Encoder().encode
"""Return the JSON of a value."""
_FEW: Final = 16 << 10
"""Bytes of two states whose differences are computed when they are read."""


class Changes:
    """Paths of the fields that differ between two states; `str` computes them.

    The states are of whole objects, or of the fields with these `names`.
    """

    def __init__(self, before: bytes, after: bytes, names: tuple[str, ...] = ()) -> None:
        self._text = ""
        self._names = names
        self._states: tuple[bytes, bytes] | None = (before, after)
        if len(before) + len(after) > _FEW:
            str(self)

    def __str__(self) -> str:
        if self._states is not None:
            self._text = " ".join(changed_paths(*self._states, self._names))
            self._states = None
        return self._text


class Compared:
    """The fields of objects that are compared: those with these attribute paths, without any path all of them."""

    __slots__ = ("names", "values")

    def __init__(self, paths: tuple[str, ...] = ()) -> None:
        self.names: Final = tuple(map(_json_path, paths))
        self.values: Final[Callable[[Any], Any]] = attrgetter(*paths) if paths else document
        """Returns the values of the fields of an object, of a single one the value itself."""


def document(obj: Any) -> bytes | None:
    """Return the JSON of an object, to be compared; None without an object, and for a large one."""
    if obj is None:
        return None
    try:
        data = encode(obj)
    except (TypeError, ValueError):
        return None  # an object that only its kind can encode
    return data if len(data) <= _LARGE else None


def changed_paths(before: bytes, after: bytes, names: tuple[str, ...] = ()) -> list[str]:
    """Return the paths of the fields that differ, at most MOST_PATHS; elements of lists have their index.

    With `names`, the states are the values of these fields, of a single one the value itself.
    """
    return list(islice(_of_states(msgspec.json.decode(before), msgspec.json.decode(after), names), MOST_PATHS))


def _of_states(before: Any, after: Any, names: tuple[str, ...]) -> Iterator[str]:
    if not names:
        yield from _differences(before, after, "")
        return
    for name, old, new in zip(names, *((before, after) if len(names) > 1 else ([before], [after])), strict=True):
        if old != new:
            # An empty field is left out of an object's JSON, unless it differs from a missing one.
            yield from list(_differences(_filled(old), _filled(new), name)) or [name]


def _filled(value: Any) -> Any:
    return None if value in ("", [], {}) else value


def _json_path(path: str) -> str:
    first, *others = path.split("_")
    return first + "".join(to_upper(each[:1]) + each[1:] for each in others)


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
