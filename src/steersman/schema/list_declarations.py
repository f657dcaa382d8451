"""Validation of list types, list map keys and list items in schemas.

Follows k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path

from .internal_form import items_form
from .walking import Schema

_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_ATOMIC: Final = "must be atomic as item of a list with x-kubernetes-list-type=set"


def list_type_errors(plain: Schema, path: Path, *, atomic_sets: bool) -> Iterator[FieldError]:
    """Yield the errors of a list's type and keys; those of a set's items only with `atomic_sets`."""
    list_type, kind = plain.get(_LIST_TYPE), plain.get("type") or ""
    if list_type is not None and kind != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        yield field.invalid(path / "type", kind, text) if kind else field.required(path / "type", text)
    elif atomic_sets:
        yield from set_errors(plain, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield field.not_supported(path / _LIST_TYPE, list_type, ("atomic", "set", "map"))
    keys = plain.get(_KEYS) or []
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        at = path / _LIST_TYPE
        yield field.required(at, text) if list_type is None else field.invalid(at, list_type, text)
    if list_type == "map":
        yield from _map_errors(plain, keys, path)


def set_errors(plain: Schema, path: Path) -> Iterator[FieldError]:
    """Yield the errors of a set's items."""
    items = plain.get("items")
    if plain.get(_LIST_TYPE) != "set" or not isinstance(items, Mapping):
        return
    match items.get("type"):
        case "array":
            if items.get(_LIST_TYPE) not in (None, "atomic"):
                yield field.invalid(path / "items" / _LIST_TYPE, items.get(_LIST_TYPE), _ATOMIC)
        case "object":
            if items.get(_MAP_TYPE) != "atomic":
                yield field.invalid(path / "items" / _MAP_TYPE, items.get(_LIST_TYPE), _ATOMIC)


def _map_errors(plain: Schema, keys: list[str], path: Path) -> Iterator[FieldError]:
    if not keys:
        yield field.required(path / _KEYS, "must not be empty if x-kubernetes-list-type is map")
    items = plain.get("items")
    at = path / "items"
    if items is None:
        yield field.required(at, "must have a schema if x-kubernetes-list-type is map")
    elif not isinstance(items, Mapping):
        yield field.invalid(at, items_form(items), "must only have a single schema if x-kubernetes-list-type is map")
    elif items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield field.invalid(at / "type", items.get("type") or "", text)
    else:
        yield from _key_errors(keys, items, path)


def _key_errors(keys: list[str], items: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    properties = items.get("properties") or {}
    seen: set[str] = set()
    for name in keys:
        if name not in properties:
            yield field.invalid(path / _KEYS, keys, "entries must all be names of item properties")
        elif properties[name].get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field.invalid((path / "items" / "properties")[name] / "type", items.get("type") or "", text)
        if name in seen:
            yield field.invalid(path / _KEYS, keys, "must not contain duplicate entries")
        seen.add(name)


def map_key_errors(plain: Schema, path: Path) -> Iterator[FieldError]:
    """Yield the errors of nullable items and keys, and of keys that may be missing."""
    items, list_type = plain.get("items"), plain.get(_LIST_TYPE)
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return
    at = path / "items"
    if items.get("nullable"):
        yield field.forbidden(at / "nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    if list_type == "set":
        return
    properties, required = items.get("properties") or {}, items.get("required") or ()
    for name in plain.get(_KEYS) or ():
        declared = properties.get(name)
        if declared is None:
            continue
        here = (at / "properties")[name]
        if name not in required and declared.get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield field.required(here / "default", text)
        if declared.get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield field.forbidden(here / "nullable", text)
