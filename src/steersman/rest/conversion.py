"""Conversions between the versions of a kind that happen where objects are stored and read again.

Stored objects may be of any version. A storage converts all objects that it reads to the version of the request in one
batch, and each object that it writes to the stored version, so the code between sees one version. The exception is
field ownership, which is computed in the versions in which the owners wrote, by synchronous code.
`run_with_conversions` runs that code. Where the code needs an object that is not converted yet, the function stops it,
converts the object, and runs the code again from the start. So the code must not change its arguments before it has
requested its last conversion.
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
"""The most conversions of one object in sequence; the owners of real objects use three or four versions."""

_Key = tuple["Conversion", str, bytes]
"""The converter, the target apiVersion, and the value of the object."""


class _Here(local):
    converted: dict[_Key, bytes] | None = None
    """Results available to the code that this thread runs."""


_here: Final = _Here()


class NotConverted(StatusError):
    """A failed conversion (500); a retry may succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message, details_present=False)


class _Unconverted(Exception):
    """Interrupts synchronous code that needs a conversion."""

    def __init__(self, key: _Key) -> None:
        super().__init__("a conversion that has to wait was asked for by code that cannot")
        self.key = key


class Conversion(ABC):
    """A converter between the versions of a kind. `kinds` has every version by apiVersion, also those that are not
    served.
    """

    kinds: Mapping[str, OpenKind]
    renames: ClassVar[bool] = False
    """True if ownership tracking takes an object for one of another version without converting it."""

    @abstractmethod
    async def convert_values(self, values: Sequence[bytes], target: OpenKind) -> list[bytes]:
        """Return these values converted to the version of `target`, in the same order; none is of that version already.

        Raises NotConverted, StatusError.
        """

    def convert(self, obj: OpenObject, source: OpenKind, target: OpenKind) -> OpenObject:
        """Return `obj`, of version `source`, in version `target`; `obj` itself if both are the same.

        Call it only in code that `run_with_conversions` runs.
        """
        if source is target:
            return obj
        key = (self, target.api_version, source.value_as_is(obj))
        known = None if _here.converted is None else _here.converted.get(key)
        if known is None:
            raise _Unconverted(key)
        found = target.decode(target.body_of(known))
        found.metadata.resource_version = obj.metadata.resource_version
        return found

    def restore_unsaid(self, obj: OpenObject, value: bytes) -> bytes:
        """Return `value`, which is `obj` converted to the stored version, completed with `obj.unsaid`."""
        return value

    @abstractmethod
    async def close(self) -> None:
        """Stop converting."""


async def run_with_conversions(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `work` in a worker thread and return its result, with every conversion that it needs.

    It runs once if it needs no conversion that has to wait, and again after each such conversion. Raises what `work`
    and conversions raise.
    """
    converted: dict[_Key, bytes] = {}
    for _ in range(_MOST_RUNS):
        try:
            return await offload(_run, converted, partial(work, *args, **kwargs))
        except _Unconverted as needed:
            key = needed.key
        conversion, version, value = key
        (converted[key],) = await conversion.convert_values([value], conversion.kinds[version])
    raise RuntimeError("a conversion is asked for again and again")


def _run(converted: dict[_Key, bytes], work: Callable[[], R]) -> R:
    outer, _here.converted = _here.converted, converted
    try:
        return work()
    finally:
        _here.converted = outer
