"""The parts of a server: started one after the other, each given those before it that it needs, ended in reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

T = TypeVar("T")


class Part:
    """A part of a server, and the base of a dataclass for each.

    Fields of the constructor are what the part needs: earlier parts, and values that all parts are given, found by
    their types. A need of the type `X | None` is None where there is no X. Other fields are what the part offers.
    """

    async def start(self, ending: AsyncExitStack) -> None:
        """Start the part. Each step that must be undone is pushed onto `ending` as soon as it is done, so that a start
        that fails or is cancelled between two steps leaves nothing behind."""
        raise NotImplementedError


class Parts:
    """The parts that have been started, and the values that they were given, by type."""

    def __init__(self, *given: object) -> None:
        self._found = list(given)

    async def start(self, parts: Iterable[type[Part]], ending: AsyncExitStack) -> None:
        """Start parts in order. Raises LookupError for a need that nothing before its part has the type of, and what
        the start of a part raises; closing `ending` then ends the parts that were started, the last one first."""
        for each in parts:
            part = cast(Callable[..., Part], each)(**self._needs_of(each))
            await part.start(ending)
            self._found.append(part)

    def find(self, kind: type[T]) -> T | None:
        """Return the part or the value of a type, None if there is none."""
        return next((each for each in self._found if isinstance(each, kind)), None)

    def __getitem__(self, kind: type[T]) -> T:
        """Return the part or the value of a type. Raises LookupError if there is none."""
        found = self.find(kind)
        if found is None:
            raise LookupError(f"{kind.__name__} is not among the parts that have been started")
        return found

    def _needs_of(self, part: type[Part]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, kind in get_type_hints(part.__init__).items():
            if name == "return":
                continue
            if isinstance(kind, UnionType):
                (wanted,) = set(get_args(kind)) - {NoneType}
                found[name] = self.find(wanted)
                continue
            found[name] = self.find(kind)
            if found[name] is None:
                raise LookupError(f"{part.__name__} needs {kind.__name__}, which no part before it is")
        return found
