"""Built-in objects that a server keeps for itself, beside those that it serves: as the values that are stored."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from steersman.kinds.built_in import built_in
from steersman.machinery.codec.protobuf.documents import PREFIX, decode_object

T = TypeVar("T", bound=msgspec.Struct)


def to_value(obj: T) -> bytes:
    """The value to store for an object, as kube-apiserver stores it in JSON."""
    return built_in(type(obj)).value(obj)


def from_value(cls: type[T], value: bytes) -> T:
    """The object of a stored value, in JSON or protobuf, whichever server wrote it.

    Raises DecodeError, or msgspec.DecodeError, for what is no such object.
    """
    obj: Any = decode_object(cls, value) if value.startswith(PREFIX) else built_in(cls).decode(value[1:])
    obj.kind = obj.api_version = ""  # which `to_value` writes
    return cast("T", obj)
