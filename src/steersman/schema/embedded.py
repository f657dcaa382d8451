"""Embedded resources (x-kubernetes-embedded-resource): their kind, apiVersion and metadata.

Follows k8s.io/apiextensions-apiserver `schema/objectmeta`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.codec.serializer import encode_sorted, to_plain
from steersman.machinery.codec.strict import DecodeError, decode_object
from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.go.strings import to_lower
from steersman.machinery.identity.schema import GroupVersionError, parse_group_version
from steersman.machinery.validation.formats import is_dns1035_label
from steersman.machinery.validation.object_meta import name_is_path_segment, validate_object_meta
from steersman.work.threads import paced

from .equality import as_in_json
from .nodes import EMBEDDED, EMBEDDED_BELOW, Node, Plain

_UNKNOWN = 'unknown field "'
_REPEATED = 'duplicate field "'


class CoercionError(Exception):
    """The error of an embedded resource with malformed metadata; `error` has the path and the reason."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


class Coercion:
    """Coercion of kind, apiVersion and metadata of embedded resources into their canonical form, in place.

    With `lenient` malformed parts are dropped; otherwise CoercionError is raised. With `want_unknown` the paths of
    unknown metadata fields are collected.
    """

    def __init__(self, *, lenient: bool = False, want_unknown: bool = False) -> None:
        self._lenient = lenient
        self._want_unknown = want_unknown
        self.unknown: list[str] = []

    def object(self, obj: Plain, node: Node, path: Path) -> None:
        """Coerce a resource, even if its schema does not mark it as one, and the resources embedded in it."""
        self._members(obj, node, path, is_resource=True)

    def value(self, value: Any, node: Node, path: Path) -> None:
        """Coerce the embedded resources in a value."""
        if not node.traits & EMBEDDED_BELOW:
            return
        if value.__class__ is dict:
            self._members(value, node, path, is_resource=bool(node.traits & EMBEDDED))
        elif value.__class__ is list and node.items is not None:
            for number, item in enumerate(paced(value)):
                self.value(item, node.items, path[number])

    def _members(self, value: Plain, node: Node, path: Path, *, is_resource: bool) -> None:
        if is_resource:
            for name in ("apiVersion", "kind"):
                self._text(value, name, path)
            if "metadata" in value:
                self._metadata(value, path)
        for name, item in paced(value.items()):
            child = node.properties.get(name)
            if child is not None:
                if child.traits & EMBEDDED_BELOW:
                    self.value(item, child, path / name)
            elif isinstance(node.additional, Node) and node.additional.traits & EMBEDDED_BELOW:
                self.value(item, node.additional, path[name])

    def _text(self, value: Plain, name: str, path: Path) -> None:
        if name not in value or value[name].__class__ is str:
            return
        if not self._lenient:
            raise CoercionError(field.invalid(path / name, value[name], "must be a string"))
        del value[name]

    def _metadata(self, value: Plain, path: Path) -> None:
        metadata = value["metadata"]
        try:
            value["metadata"] = self._read(metadata, path)
        except DecodeError as error:
            if not self._lenient:
                raise CoercionError(field.invalid(path / "metadata", metadata, str(error))) from None
            if metadata.__class__ is dict:
                value["metadata"] = self._read_leniently(metadata, path)

    def _read(self, metadata: Any, path: Path) -> Plain:
        if metadata is None:
            return {}
        read = _object_meta(metadata, want_strict=self._want_unknown)
        for text in read.warnings:
            place = text.removeprefix(_UNKNOWN).removeprefix(_REPEATED).removesuffix('"')
            self.unknown.append(f"{path / 'metadata'}.{place}")
        plain: Plain = to_plain(read.obj)
        return plain

    def _read_leniently(self, metadata: Plain, path: Path) -> Plain:
        """Return the metadata without malformed fields."""
        kept: Plain = {}
        for name, item in metadata.items():
            try:
                _object_meta({name: item}, want_strict=False)
            except DecodeError:
                continue
            kept[name] = item
        return self._read(kept, path)


def _object_meta(metadata: Any, *, want_strict: bool) -> Any:
    data = encode_sorted(metadata)
    if b".0" in data:
        data = encode_sorted(as_in_json(metadata))
    return decode_object(ObjectMeta, data, "json", want_strict=want_strict, is_ours=True)


def embedded_errors(value: Any, node: Node, path: Path) -> Iterator[FieldError]:
    """Yield the errors of the embedded resources in a value, including the value itself."""
    if not node.traits & EMBEDDED_BELOW:
        return
    if value.__class__ is dict:
        yield from resource_errors(value, node, path, is_resource=bool(node.traits & EMBEDDED))
    elif value.__class__ is list and node.items is not None:
        for number, item in enumerate(paced(value)):
            yield from embedded_errors(item, node.items, path[number])


def resource_errors(value: Plain, node: Node, path: Path, *, is_resource: bool = True) -> Iterator[FieldError]:
    """Yield the errors of an object, which counts as a resource by default, and of the resources embedded in it."""
    if is_resource:
        yield from _type_meta_errors(value, path)
        if "metadata" in value:
            yield from _metadata_errors(value["metadata"], path / "metadata")
    for name, item in paced(value.items()):
        child = node.properties.get(name)
        if child is not None:
            if child.traits & EMBEDDED_BELOW:
                yield from embedded_errors(item, child, path / name)
        elif isinstance(node.additional, Node) and node.additional.traits & EMBEDDED_BELOW:
            yield from embedded_errors(item, node.additional, path[name])


def _type_meta_errors(value: Plain, path: Path) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield field.required(path / name)
    for name in ("apiVersion", "kind"):
        if name in value:
            found = value[name]
            wrong = _text_error(name, found)
            if wrong:
                yield field.invalid(path / name, found, wrong)


def _text_error(name: str, found: Any) -> str:
    if found.__class__ is not str:
        return "must be a string"
    if not found:
        return "must not be empty"
    if name == "kind":
        errors = is_dns1035_label(to_lower(found))
        return f"may have mixed case, but should otherwise match: {','.join(errors)}" if errors else ""
    try:
        parse_group_version(found)
    except GroupVersionError as error:
        return str(error)
    return ""


def _metadata_errors(metadata: Any, path: Path) -> Iterator[FieldError]:
    try:
        meta = ObjectMeta() if metadata is None else _object_meta(metadata, want_strict=False).obj
    except DecodeError as error:
        yield field.invalid(path, metadata, str(error))
        return
    meta.name = meta.name or "fakename"  # a name is not required
    yield from validate_object_meta(
        meta, namespaced=bool(meta.namespace), name_validator=name_is_path_segment, path=path
    )
