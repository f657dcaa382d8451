"""Objects of a built-in kind in the other versions that their managers wrote in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from steersman.machinery.unstructured import from_unstructured

from .builtin import schema_for
from .plain import plain_object
from .schema import Schema
from .typed_value import validate


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a kind: its class, and how it becomes the stored version and comes from it (None: it is that)."""

    kind: type[msgspec.Struct]
    to_hub: Callable[[Any], Any] | None = None
    from_hub: Callable[[Any], Any] | None = None


class VersionConverter:
    """`FieldManager.convert` of a kind, given its versions by apiVersion.

    A Struct becomes a Struct; a dict, which must say its apiVersion and kind, becomes a dict. Raises TypedError for an
    object with two items of one key, which is taken as it is in the version of the request only.
    """

    def __init__(self, versions: Mapping[str, Version]) -> None:
        self._versions = versions
        self._of_kind = {version.kind: version for version in versions.values()}

    def __call__(self, obj: Any, api_version: str) -> tuple[Schema, Any] | None:
        target = self._versions.get(api_version)
        if target is None:
            return None
        schema = schema_for(target.kind)
        if not isinstance(obj, dict):
            found = self._converted(obj, target)
            if found is not obj:
                validate(schema.root, plain_object(found))
            return schema, found
        if obj.get("apiVersion") == api_version:
            return schema, obj
        source = self._versions.get(str(obj.get("apiVersion")))
        if source is None:
            return None
        converted = plain_object(self._converted(from_unstructured(source.kind, obj), target))
        validate(schema.root, converted)
        return schema, {**converted, "apiVersion": api_version, "kind": obj.get("kind")}

    def _converted(self, obj: Any, target: Version) -> Any:
        source = self._of_kind[type(obj)]
        if source is target:
            return obj
        hub = obj if source.to_hub is None else source.to_hub(obj)
        return hub if target.from_hub is None else target.from_hub(hub)
