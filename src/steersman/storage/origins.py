"""Origins of writes: the request that caused a write, and its time.

A server that keeps history stores both with each write. The origin is ambient: a filter binds it for each request that
may write, and the storage reads it from a context variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import msgspec
from msgspec import Struct

_LONGEST: Final = 256
"""The most characters that are kept of a text that a client chooses."""


class Origin(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The request that caused a write. Every field is "" for a write that the server made for itself."""

    verb: str = ""
    subresource: str = ""
    user: str = ""
    user_agent: str = ""
    audit_id: str = ""


class Record(Struct, frozen=True, array_like=True):
    """The stored record of a write: its time in milliseconds since 1970, and its origin."""

    milliseconds: int
    origin: Origin = Origin()


NO_ORIGIN: Final = Origin()


class Binding:
    """The origin of a request while it runs. Tasks that outlive the request inherit the binding, not the origin."""

    __slots__ = ("origin",)

    def __init__(self, origin: Origin) -> None:
        self.origin = origin


_BOUND: Final[ContextVar[Binding | None]] = ContextVar("origin", default=None)
_DECODER: Final = msgspec.json.Decoder(Record)
_ENCODER: Final = msgspec.json.Encoder()


@contextmanager
def bound_origin(origin: Origin) -> Iterator[None]:
    """Bind the origin of the writes of the code inside the block, and of its tasks until the end of the block."""
    binding = Binding(origin)
    token = _BOUND.set(binding)
    try:
        yield
    finally:
        _BOUND.reset(token)
        binding.origin = NO_ORIGIN


def current_origin() -> Origin:
    """Return the origin of writes in this context."""
    binding = _BOUND.get()
    return NO_ORIGIN if binding is None else binding.origin


def origin_of(verb: str, subresource: str, user: str, user_agent: str, audit_id: str) -> Origin:
    """Return an origin whose texts have a bounded length."""
    return Origin(verb[:_LONGEST], subresource[:_LONGEST], user[:_LONGEST], user_agent[:_LONGEST], audit_id[:_LONGEST])


def encode_record(seconds: float, origin: Origin) -> str:
    """Return the stored form of a record: a JSON array that begins with the time."""
    return _ENCODER.encode(Record(int(seconds * 1000), origin)).decode()


def decode_record(text: str | None) -> Record | None:
    """Return a stored record, None for a write without one, or if its record is damaged."""
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
