"""Sources of schemas: a definition as a dict or a file, a kind that a server has, or a built-in kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from steersman.apiextensions.declared import DeclaredVersion
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.schema import Structural, UnsupportedSchemaError, compile_schema
from steersman.testing.definitions import read

from .errors import InvalidDefinition, UnknownKind


@dataclass(frozen=True, slots=True)
class CustomSource:
    """One version of a definition."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    structural: Structural
    declared: DeclaredVersion | None = None
    """The version, without its schema; None for a built-in kind."""


def custom_source(definition: Mapping[str, Any] | str | Path, kind: str = "", version: str = "") -> CustomSource:
    """Return a version of a definition, by default the storage version.

    `definition` is a CustomResourceDefinition, or a file or folder with at least one; of several, `kind` chooses.
    Raises InvalidDefinition, UnknownKind, OSError and ValueError.
    """
    found = _definition(definition, kind)
    spec = found.get("spec") or {}
    names, versions = spec.get("names") or {}, spec.get("versions") or ()
    name = str((found.get("metadata") or {}).get("name", ""))
    for each in versions:
        if each.get("name") == version or (not version and each.get("storage")):
            schema = (each.get("schema") or {}).get("openAPIV3Schema")
            try:
                if _is_too_deep(schema):
                    raise InvalidDefinition(f"{name}: its schema has more levels than a server reads")
                structural = compile_schema(schema)
            except UnsupportedSchemaError as error:
                raise InvalidDefinition(f"{name}: {error}") from None
            except (AttributeError, TypeError, ValueError, OverflowError) as error:
                raise InvalidDefinition(f"{name}: its schema is malformed: {error}") from None
            return CustomSource(
                f"{spec.get('group', '')}/{each['name']}",
                str(names.get("kind", "")),
                str(names.get("plural", "")),
                spec.get("scope") != "Cluster",
                structural,
                _declared(each),
            )
    known = ", ".join(str(each.get("name")) for each in versions)
    raise UnknownKind(f"{name} has no version {version or 'for storage'}; it has {known or 'none'}")


def _is_too_deep(schema: Any) -> bool:
    try:
        return is_too_deep(msgspec.json.encode(schema))
    except RecursionError:
        return True


def _declared(version: Mapping[str, Any]) -> DeclaredVersion:
    """Return a version with its subresources. Raises InvalidDefinition."""
    plain = {"name": version["name"], "subresources": version.get("subresources")}
    try:
        return msgspec.convert(plain, DeclaredVersion)
    except msgspec.ValidationError as error:
        raise InvalidDefinition(f"{version['name']}: {error}") from None


def _definition(given: Mapping[str, Any] | str | Path, kind: str) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    found = read([given])
    by_kind = {str(each["spec"]["names"]["kind"]): each for each in found}
    if kind:
        if kind not in by_kind:
            raise UnknownKind(f"{given} has no definition of {kind}; it has {', '.join(sorted(by_kind))}")
        return by_kind[kind]
    if len(found) > 1:
        raise UnknownKind(f"{given} has several definitions, choose a kind: {', '.join(sorted(by_kind))}")
    return found[0]
