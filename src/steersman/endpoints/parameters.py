"""Decoder from the query of a request to each type of options.

Follows upstream's conversions of url.Values (apimachinery `runtime.Convert_Slice_string_To_*` and meta/v1
`conversion.go`): the first value of a repeated parameter counts, unless the member is a list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.api.scalars import Int32, Int64, Time
from steersman.endpoints.query import Query, truthy
from steersman.machinery.errors.go_numbers import parse_int, parse_uint
from steersman.machinery.errors.status import bad_request
from steersman.machinery.values.times import canonical_time

O = TypeVar("O", bound=msgspec.Struct)  # noqa: E741

_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_NO_TIME: Final = ("", "null")
"""Values of a time parameter that stand for Go's zero time."""
_PORT_BITS: Final = 16
_TYPE_META: Final = frozenset({"kind", "apiVersion"})


class _Member(NamedTuple):
    """A member of an options type: its attribute, its parameter, and the parser of the parameter's values."""

    attribute: str
    parameter: str
    read: Callable[[Query, str], Any]


def decode_parameters(options: type[O], query: Query) -> O:
    """Return the options in `query`; members that it does not name have their defaults.

    Unknown parameters are ignored. Raises StatusError 400 with upstream's text for the first member, in their order,
    with a malformed value.
    """
    decoded = options()
    if not query:
        return decoded
    try:
        for attribute, parameter, read in _members(options):
            if parameter in query:
                setattr(decoded, attribute, read(query, parameter))
    except ValueError as error:
        raise bad_request(str(error)) from None
    if isinstance(decoded, DeleteOptions):
        decoded.preconditions = _preconditions(query)
    return decoded


def _preconditions(query: Query) -> Preconditions | None:
    """Return the preconditions in a query, None without any; each is a parameter of its own."""
    uid, version = query.get("uid") or None, query.get("resourceVersion") or None
    return Preconditions(uid=uid, resource_version=version) if uid or version else None


@cache
def _members(options: type[msgspec.Struct]) -> tuple[_Member, ...]:
    """Return the members that parameters can set, in the order of the type."""
    return tuple(
        _Member(each.name, each.encode_name, _READERS[each.type])
        for each in msgspec.structs.fields(options)
        if each.encode_name not in _TYPE_META and each.type != Preconditions | None
    )


def _text(query: Query, parameter: str) -> str:
    return query[parameter]


def _flag(query: Query, parameter: str) -> bool:
    return truthy(query[parameter])


def _integer(query: Query, parameter: str) -> int:
    return parse_int(query[parameter])


def _time(query: Query, parameter: str) -> str:
    text = query[parameter]
    return _ZERO_TIME if text in _NO_TIME else canonical_time(text) or _ZERO_TIME


def _texts(query: Query, parameter: str) -> list[str]:
    return query.get_all(parameter)


def _ports(query: Query, parameter: str) -> list[int]:
    """Parse port numbers; each value may hold several, separated by commas."""
    try:
        texts = ",".join(query.get_all(parameter)).split(",")
        ports = {text: parse_uint(text, _PORT_BITS) for text in dict.fromkeys(texts)}
        return [ports[text] for text in texts]
    except ValueError as error:
        raise ValueError(f"cannot convert to []int32: {error}") from None


_READERS: Final[dict[Any, Callable[[Query, str], Any]]] = {
    str: _text,
    str | None: _text,
    bool: _flag,
    bool | None: _flag,
    Int64: _integer,
    Int64 | None: _integer,
    Time | None: _time,
    list[str]: _texts,
    list[str] | None: _texts,
    list[Int32]: _ports,
}
"""Parsers of parameters by the type of the member."""
