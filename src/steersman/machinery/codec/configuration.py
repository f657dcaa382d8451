"""Configuration documents: YAML or JSON with a kind and a version, read as apimachinery's codecs read them.

Their types are Structs: generated ones of `steersman.api`, or classes derived from `Document`. One class stands for all
versions of a kind that have the same members. Error messages name the version of the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from steersman.api.scalars import Wire
from steersman.machinery.codec.derived_types import GO_TYPE, type_of
from steersman.machinery.codec.go_types import GoType, members_of
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError, Media, decode_as, peek_type_meta, strict_error
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionError, no_kind_registered, parse_group_version
from steersman.machinery.suggestions import did_you_mean
from steersman.work.patterns import late_pattern

T = TypeVar("T", bound=Wire)

Kinds = Mapping[tuple[str, str], type[T]]
"""Classes of documents by apiVersion and kind."""
Nanoseconds = Annotated[int, Meta(extra={GO_TYPE: "time.Duration"})]
"""The type of a member that is a time.Duration in Go, which JSON has as a number."""

_UNKNOWN: Final = late_pattern('unknown field "([^"]*)"')
_OF_VERSION: Final = late_pattern("V[0-9]+(?:(?:Alpha|Beta)[0-9]+)?$")


class Document(Wire):
    """The base class of documents whose types are not generated.

    The name of a class is Go's, and may begin with `_`. A class for one version only has the version as a suffix
    (`WebhookAdmissionV1Alpha1`).
    """

    kind: str = ""
    api_version: str = ""


class MissingKindError(DecodeError):
    """The error for a document without a kind or apiVersion, or of an unknown kind."""


def detect_media(data: bytes) -> Media:
    """Return "json" if the document starts with a brace, otherwise "yaml"."""
    return "json" if data.lstrip().startswith(b"{") else "yaml"


@contextmanager
def limits_as_decode_errors() -> Iterator[None]:
    """Raise DecodeError for a file with more values than a body of a client may have, instead of the StatusError."""
    try:
        yield
    except StatusError as error:
        raise DecodeError(error.message) from None


def read_document(data: bytes, kinds: Kinds[T], *, strict: bool = True, default: tuple[str, str] = ("", "")) -> T:
    """Return the document as an object of one of the classes in `kinds`.

    `default` is the apiVersion and kind of a document that has none. Raises DecodeError with upstream's message, also
    for more values than an object may have, and MissingKindError if the document is of none of the kinds.
    """
    with limits_as_decode_errors():
        return _read(data, kinds, strict, default)


def _read(data: bytes, kinds: Kinds[T], strict: bool, default: tuple[str, str]) -> T:
    media = detect_media(data)
    type_meta = peek_type_meta(data, media)
    api_version, kind = type_meta[0] or default[0], type_meta[1] or default[1]
    shown = data.decode("utf-8", "replace")
    if not kind:
        raise MissingKindError(f"Object 'Kind' is missing in '{shown}'")
    if not api_version:
        raise MissingKindError(f"Object 'apiVersion' is missing in '{shown}'")
    cls = kinds.get((api_version, kind))
    if cls is None:
        try:
            version = parse_group_version(api_version)
        except GroupVersionError as error:
            raise DecodeError(str(error)) from None
        raise MissingKindError(no_kind_registered(kind, str(version)))
    type_ = type_in_version(cls, api_version.rpartition("/")[2])
    decoded = decode_as(type_, data, media, want_strict=strict)
    if decoded.warnings:
        raise DecodeError(strict_error([_with_known(each, type_) for each in decoded.warnings]))
    return from_plain(cls, decoded.obj or {})


@lru_cache(maxsize=64)
def type_in_version(cls: type[Any], version: str) -> GoType:
    """Return the Go type of a class; Go prints the package of the class's own types as `version`."""
    type_ = type_of(cls)
    return _in_version(type_, type_.name.rpartition(".")[0], version)


def _in_version(type_: GoType, package: str, version: str) -> GoType:
    if type_.element is not None:
        element = _in_version(type_.element, package, version)
        brackets = type_.shown.removesuffix(type_.element.shown).removeprefix("*")
        return replace(type_, element=element, shown=brackets + element.shown)
    if type_.kind == "struct" and type_.name.rpartition(".")[0] == package:
        members = {
            name: replace(each, type=_in_version(each.type, package, version))
            for name, each in members_of(type_).items()
        }
        name = _OF_VERSION.sub("", type_.name.rpartition(".")[2].removeprefix("_"))
        return replace(type_, members=members, shown=f"{version}.{name}")
    where, _, name = type_.shown.rpartition(".")
    is_named = type_.kind in ("string", "bool", "int32", "int64") and type_.shown != type_.kind
    if is_named and where in ("", package.rpartition(".")[2]):
        return replace(type_, shown=f"{version}.{name}")
    return type_


def _with_known(warning: str, type_: GoType) -> str:
    """Return a warning about an unknown field with the list of the known fields."""
    match = _UNKNOWN.fullmatch(warning)
    if match is None:
        return warning
    *steps, name = match[1].split(".")
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
