"""Decoding of an object that a policy's JSON Patch changed (apiserver `policy/mutating/patch` json_patch.go).

As upstream, a patch may change the kind. The object is then decoded as that kind, and an error reports that it cannot
be converted back.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.index import MODULES
from steersman.kinds.built_in import find_built_in
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import encode_in_order, encode_sorted
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import Path
from steersman.machinery.errors.field import invalid as invalid_field
from steersman.machinery.errors.status import internal, invalid
from steersman.machinery.identity.schema import (
    GroupKind,
    GroupVersion,
    GroupVersionError,
    GroupVersionKind,
    parse_group_version,
)
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import check_count

_UNDECODABLE: Final = "couldn't get version/kind; json parse error: json: cannot unmarshal"
_META: Final = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_JSON_KINDS: Final = {bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
_SCHEME: Final = "pkg/runtime/scheme.go:111"


def decode_patched(kind: Kind[Any], plain: Any) -> Any:
    """Return the object of a kind after a patch.

    Raises StatusError 500 for a result that is no such object, 422 for a custom resource of another kind.
    """
    data = encode_in_order(plain)
    if is_too_deep(data):
        raise internal("the patched object is nested too deeply")
    check_count(data)
    stated_kind = _stated_kind(plain)
    if kind.is_open:
        _check_custom(kind, stated_kind, plain)
    elif (stated := _with_defaults(stated_kind, kind)) != kind.gvk:
        raise internal(_conversion_error(kind, stated, data))
    try:
        return _decode(kind, data)
    except DecodeError as error:
        raise internal(error) from None


def _decode(kind: Kind[Any], data: bytes) -> Any:
    """Return the object in JSON. Raises DecodeError."""
    read = kind.read_internal(data, strict=not kind.is_open)
    if read.warnings:
        raise DecodeError(f"strict decoding error: {', '.join(read.warnings)}")
    if why := kind.internal_error(read.obj):
        raise DecodeError(why)
    return read.obj


def _stated_kind(plain: Any) -> tuple[GroupVersion, str]:
    """Return the group version and the kind that an object states, empty where it states none. Raises StatusError 500."""
    if not isinstance(plain, dict):
        raise internal(f"{_UNDECODABLE} {_JSON_KINDS.get(type(plain), 'string')} into Go value of type {_META}")
    texts = []
    for name in ("apiVersion", "kind"):
        value = plain.get(name)
        if not isinstance(value, str | None):
            raise internal(f"{_UNDECODABLE} {_JSON_KINDS[type(value)]} into Go struct field .{name} of type string")
        texts.append(value or "")
    try:
        return parse_group_version(texts[0]), texts[1]
    except GroupVersionError as error:
        raise internal(error) from None


def _check_custom(kind: Kind[Any], stated: tuple[GroupVersion, str], plain: dict[str, Any]) -> None:
    """Raise StatusError for a custom resource of another kind or version, or without a kind."""
    version, name = stated
    if not name:
        raise internal(f"Object 'Kind' is missing in '{encode_sorted(plain).decode()}'")
    if version != kind.gvk.group_version:
        shown = f"{version.group}/{version.version}, Kind={name}"
        raise internal(
            f"failed to convert object: {shown} is unstructured and is not suitable for converting to "
            f'"{kind.gvk.group_version}"'
        )
    if name != kind.name:
        metadata = plain.get("metadata")
        called = metadata.get("name") if isinstance(metadata, dict) else ""
        error = invalid_field(Path("kind"), name, f"must be {kind.name}")
        raise invalid(GroupKind(kind.group, name), called if isinstance(called, str) else "", (error,))


def _with_defaults(stated: tuple[GroupVersion, str], kind: Kind[Any]) -> GroupVersionKind:
    """Return the stated kind of an object; missing parts are those of `kind`."""
    version, name = stated
    return (version if version.version else kind.gvk.group_version).with_kind(name or kind.name)


def _conversion_error(kind: Kind[Any], stated: GroupVersionKind, data: bytes) -> str:
    """Return the error text for an object whose kind was changed by a patch."""
    other = find_built_in(stated)
    if other is None:
        return f'no kind "{stated.kind}" is registered for version "{stated.group_version}" in scheme "{_SCHEME}"'
    try:
        _decode(other, data)
    except DecodeError as error:
        return str(error)
    package = MODULES.get((kind.group, kind.version), kind.group).partition(".")[0]
    internal_type = f"{'core' if package == 'events' else package}.{kind.name}"
    return f"failed to convert object: converting ({stated.version}.{stated.kind}) to ({internal_type}): unknown conversion"
