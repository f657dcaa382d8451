"""The parts of a server: started one after the other, each given those before it that it needs, ended in reverse."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, TypeVar, get_args

T = TypeVar("T")

_OFFERED: Final = object()


def offered() -> Any:
    """Mark an attribute of a part as one that the part offers: its `start` sets the value."""
    return _OFFERED


class Part:
    """A part of a server.

    Annotated attributes without a value are what the part needs: earlier parts, and values that all parts are given,
    found by their types. A need of the type `X | None` is None where there is no X. Attributes that are `offered()`, or
    have a value, are what the part offers.
    """

    _needs: ClassVar[dict[str, tuple[str, str]]] = {}
    """Attribute -> its annotation, and the module in which that has a meaning."""

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        needs = {
            name: (kind, cls.__module__) for name, kind in own.get("__annotations__", {}).items() if name not in own
        }
        cls._needs = {**cls._needs, **needs}
        for name in [name for name, value in own.items() if value is _OFFERED]:
            delattr(cls, name)

    async def start(self, ending: AsyncExitStack) -> None:
        """Start the part. Each step that must be undone is pushed onto `ending` as soon as it is done, so that a start
        that fails or is cancelled between two steps leaves nothing behind."""
        raise NotImplementedError

    @classmethod
    @cache
    def needs(cls) -> dict[str, Any]:
        """Return the types of what the part needs, by attribute."""
        return {name: eval(kind, vars(sys.modules[module])) for name, (kind, module) in cls._needs.items()}


class Parts:
    """The parts that have been started, and the values that they were given, by type."""

    def __init__(self, *given: object) -> None:
        self._found = list(given)

    async def start(self, parts: Iterable[type[Part]], ending: AsyncExitStack) -> None:
        """Start parts in order. Raises LookupError for a need that nothing before its part has the type of, and what
        the start of a part raises; closing `ending` then ends the parts that were started, the last one first."""
        for each in parts:
            part = each()
            for name, kind in each.needs().items():
                setattr(part, name, self._needed(part, kind))
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

    def _needed(self, part: Part, kind: Any) -> object:
        if isinstance(kind, UnionType):
            (wanted,) = set(get_args(kind)) - {NoneType}
            return self.find(wanted)
        found = self.find(kind)
        if found is None:
            raise LookupError(f"{type(part).__name__} needs {kind.__name__}, which no part before it is")
        return found
