"""Parts of a server: started one after the other, each with the earlier parts that it needs, and ended in reverse
order.
"""

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
    """Mark an attribute as offered by its part to later code; the `start` of the part sets the value."""
    return _OFFERED


class Part:
    """A part of a server.

    Annotated attributes without a value are the part's needs: earlier parts, and values that are given to all parts.
    Both are found by type. A need of the type `X | None` is None if there is no X. Attributes that are `offered()`, or
    that have a value, are what the part offers to others.
    """

    _needs: ClassVar[dict[str, tuple[str, str]]] = {}
    """Annotation of each needed attribute, and the module in which the annotation is evaluated."""

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        needs = {
            name: (kind, cls.__module__) for name, kind in own.get("__annotations__", {}).items() if name not in own
        }
        cls._needs = {**cls._needs, **needs}
        for name in [name for name, value in own.items() if value is _OFFERED]:
            delattr(cls, name)

    async def start(self, ending: AsyncExitStack) -> None:
        """Start the part, whose needs are set.

        Push the undoing of each step onto `ending` as soon as the step is done, so that a start that fails or is
        cancelled between two steps leaves nothing behind.
        """
        raise NotImplementedError

    @classmethod
    @cache
    def needs(cls) -> dict[str, Any]:
        """Return the types of the part's needs, by attribute name."""
        return {name: eval(kind, vars(sys.modules[module])) for name, (kind, module) in cls._needs.items()}


class Parts:
    """Started parts, and the values that were given to all of them, found by type."""

    def __init__(self, *given: object) -> None:
        self._found = list(given)

    async def start(self, parts: Iterable[type[Part]], ending: AsyncExitStack) -> None:
        """Create and start the parts in order. Closing `ending` ends the started parts, the last one first.

        Raises LookupError for a need that no earlier part or given value satisfies, and what the start of a part
        raises.
        """
        for each in parts:
            part = each()
            for name, kind in each.needs().items():
                setattr(part, name, self._needed(part, kind))
            await part.start(ending)
            self._found.append(part)

    def find(self, kind: type[T]) -> T | None:
        """Return the part or value of the type `kind`, or None."""
        return next((each for each in self._found if isinstance(each, kind)), None)

    def __getitem__(self, kind: type[T]) -> T:
        """Return the part or value of the type `kind`. Raises LookupError if there is none."""
        found = self.find(kind)
        if found is None:
            raise LookupError(f"no part of the type {kind.__name__} has been started")
        return found

    def _needed(self, part: Part, kind: Any) -> object:
        if isinstance(kind, UnionType):
            (wanted,) = set(get_args(kind)) - {NoneType}
            return self.find(wanted)
        found = self.find(kind)
        if found is None:
            raise LookupError(f"{type(part).__name__} needs {kind.__name__}, which no earlier part provides")
        return found
