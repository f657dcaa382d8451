"""Conversions between the versions of a kind that are made where objects are stored and read again.

Stored objects may be of any version. A storage converts what it reads to the version of the request, all at once, and
what it writes to the stored one, so the code between them has objects of one version. Only who owns which field is
worked out in the versions that the owners wrote in, by code that cannot wait: `settled` runs it, and where it asks for
what is not converted yet, it is stopped there, that is converted, and it is run again. So such code must leave what it
is given as it is until it has converted all it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import local
from typing import ClassVar, Final, ParamSpec, TypeVar

from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.errors.status import StatusError
from steersman.work.offloading import offload

P = ParamSpec("P")
R = TypeVar("R")

_MOST_RUNS: Final = 100
"""Conversions of one object that may be needed one after the other; upstream's owners have three or four versions."""

_Key = tuple["Conversion", str, bytes]
"""What converts, the apiVersion that is wanted, and the value of the object."""


class _Here(local):
    converted: dict[_Key, bytes] | None = None
    """What has been converted for the code that this thread runs."""


_here: Final = _Here()


class NotConverted(StatusError):
    """500: what converts objects has failed, and perhaps does so no more in a moment."""

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message, details_present=False)


class _Unconverted(Exception):
    """Stops code that needs a conversion."""

    def __init__(self, key: _Key) -> None:
        super().__init__("a conversion that has to wait was asked for by code that cannot")
        self.key = key


class Conversion(ABC):
    """Between the versions of a kind. `kinds` are all there are, by apiVersion, those too that are not served."""

    kinds: Mapping[str, OpenKind]
    renames: ClassVar[bool] = False
    """Whether an object is taken for one of another version as it is, by those who look for its owners."""

    @abstractmethod
    async def values(self, values: Sequence[bytes], target: OpenKind) -> list[bytes]:
        """The objects of these values, none of which is of the target's version, in that, in their order.

        Raises NotConverted, StatusError.
        """

    def converted(self, obj: OpenObject, source: OpenKind, target: OpenKind) -> OpenObject:
        """One object of `source` as one of `target`, within `settled`; itself if that is the same."""
        if source is target:
            return obj
        key = (self, target.api_version, source.value_as_is(obj))
        known = None if _here.converted is None else _here.converted.get(key)
        if known is None:
            raise _Unconverted(key)
        found = target.decode(target.body_of(known))
        found.metadata.resource_version = obj.metadata.resource_version
        return found

    def completed(self, obj: OpenObject, value: bytes) -> bytes:
        """The value of the stored version that `obj` was converted to, with what `obj` leaves unsaid."""
        return value

    @abstractmethod
    async def close(self) -> None:
        """Nothing is converted any more."""


async def settled(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `work` gives when everything it converts has been converted; it is run once if nothing has to wait for it.

    Raises what it and conversions raise.
    """
    converted: dict[_Key, bytes] = {}
    for _ in range(_MOST_RUNS):
        try:
            return await offload(_run, converted, partial(work, *args, **kwargs))
        except _Unconverted as needed:
            key = needed.key
        conversion, version, value = key
        (converted[key],) = await conversion.values([value], conversion.kinds[version])
    raise RuntimeError("a conversion is asked for again and again")


def _run(converted: dict[_Key, bytes], work: Callable[[], R]) -> R:
    outer, _here.converted = _here.converted, converted
    try:
        return work()
    finally:
        _here.converted = outer
