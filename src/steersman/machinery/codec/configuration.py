"""Configuration documents: YAML or JSON with a kind and a version, read as apimachinery's codecs read them.

Their Go types have no generated classes; they are written down as `GoType`s with the functions here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from steersman.machinery.codec.go_types import GoMember, GoType
from steersman.machinery.codec.strict import DecodeError, Media, decode_as, peek_type_meta, strict_error
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionError, no_kind_registered, parse_group_version
from steersman.machinery.suggestions import did_you_mean

STRING: Final = GoType("string", "string")
INT32: Final = GoType("int32", "int32")
BOOL: Final = GoType("bool", "bool")
RAW_EXTENSION: Final = GoType("own", "runtime.RawExtension", name="pkg.runtime.RawExtension")
STRINGS: Final = GoType("list", "[]string", element=STRING, pointer=True)


_UNKNOWN: Final = re.compile('unknown field "([^"]*)"')


class MissingKindError(DecodeError):
    """The document does not say what it is, or it is of a kind that is not known."""


def struct_type(shown: str, members: Mapping[str, GoType]) -> GoType:
    """A struct by what Go prints for it, and its members by their JSON names."""
    return GoType("struct", shown, members={name: GoMember(type_, ()) for name, type_ in members.items()})


def document_type(shown: str, members: Mapping[str, GoType]) -> GoType:
    """As above, with an apiVersion and a kind."""
    type_ = struct_type(shown, members)
    type_.members |= {name: GoMember(STRING, ("TypeMeta",)) for name in ("apiVersion", "kind")}
    return type_


def list_type(element: GoType) -> GoType:
    """A list of what `element` is."""
    return GoType("list", f"[]{element.shown}", element=element, pointer=True)


def media_of(data: bytes) -> Media:
    """JSON starts with a brace, everything else is YAML."""
    return "json" if data.lstrip().startswith(b"{") else "yaml"


def decode_document(
    data: bytes, kinds: Mapping[tuple[str, str], GoType], *, strict: bool = True
) -> tuple[str, dict[str, Any]]:
    """The apiVersion of a document, and its members. `kinds` are those it may be of, by (apiVersion, kind).

    Raises DecodeError in upstream's words, also for more values than an object may have; MissingKindError if it is of
    none of the kinds.
    """
    try:
        return _decode(data, kinds, strict=strict)
    except StatusError as error:  # a bound of what clients send
        raise DecodeError(error.message) from None


def _decode(data: bytes, kinds: Mapping[tuple[str, str], GoType], *, strict: bool) -> tuple[str, dict[str, Any]]:
    media = media_of(data)
    api_version, kind = peek_type_meta(data, media)
    shown = data.decode("utf-8", "replace")
    if not kind:
        raise MissingKindError(f"Object 'Kind' is missing in '{shown}'")
    if not api_version:
        raise MissingKindError(f"Object 'apiVersion' is missing in '{shown}'")
    type_ = kinds.get((api_version, kind))
    if type_ is None:
        try:
            version = parse_group_version(api_version)
        except GroupVersionError as error:
            raise DecodeError(str(error)) from None
        raise MissingKindError(no_kind_registered(kind, str(version)))
    decoded = decode_as(type_, data, media, want_strict=strict)
    if decoded.warnings:
        raise DecodeError(strict_error([_with_known(each, type_) for each in decoded.warnings]))
    return api_version, decoded.obj


def _with_known(warning: str, type_: GoType) -> str:
    """Return a warning about a field that is not known with the fields that are there."""
    found = _UNKNOWN.fullmatch(warning)
    if found is None:
        return warning
    *steps, name = found[1].split(".")
    here: GoType | None = type_
    for step in steps:
        if here is None or step.partition("[")[0] not in here.members:
            return warning
        here = here.members[step.partition("[")[0]].type
        for _ in range(step.count("[")):
            here = here.element if here is not None else None
    if here is None or not here.members:
        return warning
    return f"{warning} (known are {', '.join(sorted(here.members))}{did_you_mean(name, here.members)})"
