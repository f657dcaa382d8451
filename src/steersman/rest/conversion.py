"""Conversions that have to wait, e.g. for another program, used by code that cannot.

Objects that are read are converted in batches before anything is made of them (`endpoints.Scope.converted`). What is
written goes through code that converts here and there (patches, ownership by version): `settled` runs it, and where it
asks for what is not converted yet, it is stopped there, that is converted, and it is run again. So such code must leave
what it is given as it is until it has converted all it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from threading import local
from time import perf_counter
from typing import Any, Final, ParamSpec, TypeVar

from steersman.kinds.kind import Kind
from steersman.machinery.large_work.slow_lane import SlowLane, done

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_TURN: Final = 0.004
"""Seconds for which objects are decoded or encoded before others have the loop."""
_MOST_RUNS: Final = 100
"""Versions of one object that may be needed one after the other; upstream's objects have three or four at most."""

_Key = tuple["WaitingConversion", bool, bytes]


class _Here(local):
    converted: dict[_Key, bytes] | None = None
    """What has been converted for the code that this thread runs."""


_here: Final = _Here()


class _Unconverted(Exception):
    """Stops code that needs a conversion."""

    def __init__(self, key: _Key) -> None:
        super().__init__("a conversion that has to wait was asked for by code that cannot")
        self.key = key


class WaitingConversion:
    """Between the stored version of a kind and another one. `convert(objects, target)` gives them in that kind, in
    their order; it may wait, and raises StatusError."""

    def __init__(
        self, stored: Kind[Any], other: Kind[Any], convert: Callable[[Sequence[Any], Kind[Any]], Awaitable[list[Any]]]
    ) -> None:
        self._stored = stored
        self._other = other
        self._convert = convert

    def to_hub(self, obj: Any) -> Any:
        """An object of the other version as the stored one, within `settled`."""
        return self._settled(obj, to_hub=True)

    def from_hub(self, obj: Any) -> Any:
        """An object of the stored version as the other one, within `settled`."""
        return self._settled(obj, to_hub=False)

    def _settled(self, obj: Any, *, to_hub: bool) -> Any:
        source, target = self._kinds(to_hub=to_hub)
        key = (self, to_hub, source.body(obj))
        known = None if _here.converted is None else _here.converted.get(key)
        if known is None:
            raise _Unconverted(key)
        return target.decode(known)

    def _kinds(self, *, to_hub: bool) -> tuple[Kind[Any], Kind[Any]]:
        return (self._other, self._stored) if to_hub else (self._stored, self._other)

    async def bodies(self, bodies: Sequence[bytes], *, to_hub: bool = False) -> list[bytes]:
        """The same objects in the other version, or from there in the stored one, converted all at once."""
        source, target = self._kinds(to_hub=to_hub)
        converted = await self._convert([source.decode(body) async for body in _unhurried(bodies)], target)
        return [target.body(obj) async for obj in _unhurried(converted)]


async def _unhurried(values: Sequence[T]) -> AsyncIterator[T]:
    """Them all, while others have the loop now and then."""
    began = perf_counter()
    for value in values:
        if perf_counter() - began > _TURN:
            await asyncio.sleep(0)
            began = perf_counter()
        yield value


async def settled(lane: SlowLane | None, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `work` gives when everything it converts has been converted; it is run once if nothing has to wait for it.

    Raises what it and conversions raise.
    """
    converted: dict[_Key, bytes] = {}
    for _ in range(_MOST_RUNS):
        try:
            return await done(lane, _run, converted, partial(work, *args, **kwargs))
        except _Unconverted as needed:
            key = needed.key
        conversion, to_hub, body = key
        (converted[key],) = await conversion.bodies([body], to_hub=to_hub)
    raise RuntimeError("a conversion is asked for again and again")


def _run(converted: dict[_Key, bytes], work: Callable[[], R]) -> R:
    outer, _here.converted = _here.converted, converted
    try:
        return work()
    finally:
        _here.converted = outer
