"""Paths of fields that a schema does not know, as strict decoding tells them: `spec.list[0].field`."""

from __future__ import annotations

from typing import Any, Final

Where = tuple[Any, str] | None
"""The way to a value, written down when it is needed: that to what it is in, and a name or `[number]`."""

_MOST_TEXT: Final = 16 << 20
"""Characters of all paths after which no more are kept: clients choose the names in them."""


class UnknownFields:
    """Gathers paths. One that keeps none costs nothing."""

    __slots__ = ("_room", "paths")

    def __init__(self, *, kept: bool) -> None:
        self.paths: list[str] = []
        self._room = _MOST_TEXT if kept else -1

    def add(self, where: Where, name: str) -> None:
        """Keeps the path of a member."""
        if self._room >= 0:
            path = written((where, name))
            self._room -= len(path)
            self.paths.append(path)

    @property
    def are_kept(self) -> bool:
        """Whether there is any use in adding more."""
        return self._room >= 0


def written(where: Where) -> str:
    """A way as text; a name that looks like a number in brackets is one to the eye only."""
    steps: list[str] = []
    while where is not None:
        where, step = where
        if where is not None and not step.startswith("["):
            steps.append(step)
            steps.append(".")
        else:
            steps.append(step)
    return "".join(reversed(steps))
