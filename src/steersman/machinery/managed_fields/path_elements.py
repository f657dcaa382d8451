"""Path elements as FieldsV1 writes them: `f:name`, `k:{"name":"a"}`, `v:"a"`, `i:0`.

Path elements are this text everywhere, and the keys of field sets. The text is canonical: keys sorted by name, JSON
without white space, as Go writes it. Follows sigs.k8s.io/structured-merge-diff `fieldpath`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from json import encoder
from typing import Any, Final

import msgspec

from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.machinery.errors.field import format_float, quote
from steersman.machinery.errors.go_print import GoValue
from steersman.work.patterns import late_pattern
from steersman.work.threads import give_way

from .typed_error import TypedError

Order = tuple[Any, ...]

SELF: Final = "."
"""The name beside the children of an element that is itself in the set."""

_FIELD, _KEY, _VALUE, _INDEX = range(4)
_NUMBER, _TEXT, _BOOLEAN, _OTHER, _NULL = range(5)

_quoted = encoder.encode_basestring


_UNDEFINED: Final = '{"{{undefined}}":""}'
"""The text for a value that JSON cannot express."""
_REMEMBERED: Final = 256
"""The longest text that is cached, because clients choose these texts."""


def scalar_text(value: Any) -> str:
    """Return the JSON of a scalar within a path element."""
    if type(value) is str:
        text: str = _quoted(value)
        if "<" not in text and ">" not in text and "&" not in text and text.isascii():
            return text
    return json_text(value)


def key_text(fields: Iterable[tuple[str, Any]]) -> str:
    """Return the path element of a list item with these keys, sorted by name."""
    return "k:{" + ",".join(f"{json_text(name)}:{json_text(value)}" for name, value in fields) + "}"


def value_text(value: Any) -> str:
    """Return the path element of a set's item. Raises TypedError for a value that is no scalar."""
    if isinstance(value, dict):
        raise TypedError("associative list without keys has an element that's a map type")
    if isinstance(value, list):
        raise TypedError("not supported: associative list with lists as elements")
    if value is None:
        raise TypedError("associative list without keys has an element that's an explicit null")
    return "v:" + scalar_text(value)


def json_text(value: Any) -> str:
    """Return the JSON of any value in a path element.

    A value that JSON cannot express gives a placeholder, which never gets into storage.
    """
    return _UNDEFINED if isinstance(value, GoValue) else encode(value).decode()


def canonical(text: str) -> str | None:
    """Return the canonical form of a client's path element; None for an unknown sort of element.

    Raises ValueError (or its subclass msgspec.DecodeError) for malformed text.
    """
    return _canonical(text) if len(text) <= _REMEMBERED else _canonical.__wrapped__(text)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str | None:
    if len(text) < 2:
        raise ValueError("key must be 2 characters long:")
    if text[1] != ":":
        raise ValueError(f"missing colon: {text}")
    match text[0]:
        case "f":
            return text
        case "k":
            fields = decode_plain(text[2:].encode())
            if not isinstance(fields, Mapping):
                raise ValueError(f"not an object: {text}")
            return key_text(sorted(fields.items()))
        case "v":
            return "v:" + json_text(decode_plain(text[2:].encode()))
        case "i":
            return f"i:{_index(text[2:])}"
    return None


_ATOI: Final = late_pattern(r"[+-]?[0-9]{1,19}")


def _index(text: str) -> int:
    """Parse an index as Go's Atoi does. Raises ValueError."""
    if not _ATOI.fullmatch(text) or not -(2**63) <= (index := int(text)) < 2**63:
        raise ValueError(f"not an index: {text[:40]}")
    return index


def _rank(value: Any) -> Order:
    if isinstance(value, bool):
        return (_BOOLEAN, value)
    if isinstance(value, int | float):
        return (_NUMBER, value)
    if isinstance(value, str):
        return (_TEXT, value)
    return (_NULL,) if value is None else (_OTHER, msgspec.json.encode(value))


def order(text: str) -> Order:
    """Return the sort key of an element: first names, then keys by their typed values (80 before 443), values, indexes."""
    return _order(text) if len(text) <= _REMEMBERED else _order.__wrapped__(text)


@lru_cache(maxsize=8192)
def _order(text: str) -> Order:
    give_way()
    if text == SELF:
        return (-1,)
    match text[0]:
        case "f":
            return (_FIELD, text)
        case "k":
            fields = decode_plain(text[2:].encode())
            return (_KEY, tuple((name, _rank(fields[name])) for name in sorted(fields)))
        case "v":
            return (_VALUE, _rank(decode_plain(text[2:].encode())))
    return (_INDEX, _index(text[2:]))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if value == {"{{undefined}}": ""}:
        return "{{undefined}}"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown(item)}" for name, item in value.items())
    return format_float(value) if isinstance(value, float) else encode(value).decode()


def display(text: str) -> str:
    """Return an element as messages show it: `.name`, `[name="a"]`, `[="a"]`, `[0]`."""
    match text[0]:
        case "f":
            return "." + text[2:]
        case "k":
            fields = decode_plain(text[2:].encode())
            return "[" + ",".join(f"{name}={_shown(fields[name])}" for name in sorted(fields)) + "]"
        case "v":
            return f"[={_shown(decode_plain(text[2:].encode()))}]"
    return f"[{text[2:]}]"
