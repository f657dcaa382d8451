"""Values of built-in objects that a server stores for its own use and does not serve."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from steersman.kinds.built_in import built_in
from steersman.machinery.codec.protobuf.documents import PREFIX, decode_object

T = TypeVar("T", bound=msgspec.Struct)


def to_value(obj: T) -> bytes:
    """Return the value to store for an object, as kube-apiserver stores it in JSON."""
    return built_in(type(obj)).value(obj)


def from_value(cls: type[T], value: bytes) -> T:
    """Decode a stored value, in JSON or protobuf, whichever server wrote it.

    Raises DecodeError or msgspec.DecodeError if it is no object of this class.
    """
    obj: Any = decode_object(cls, value) if value.startswith(PREFIX) else built_in(cls).decode(value[1:])
    obj.kind = obj.api_version = ""  # `to_value` writes them again
    return cast("T", obj)
