"""Conversion of objects to the other versions in which their managers wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from .plain import Plain
from .tracker import OwnedKind
from .typed_value import validate


class Version(Struct, frozen=True):
    """A version of a kind, with its conversions to and from the stored version (None for no change)."""

    kind: OwnedKind
    to_hub: Callable[[Any], Any] | None = None
    from_hub: Callable[[Any], Any] | None = None

    @property
    def api_version(self) -> str:
        """Return the apiVersion of objects in this version."""
        return self.kind.api_version


class VersionConverter:
    """`FieldManager.convert` of a kind in the version `own`, with all its versions by apiVersion.

    An object, which is in version `own`, is converted to an object; a dict, which must have its apiVersion and kind, to
    a dict. Raises TypedError for an object with two list items of one key, which is only allowed in its own version,
    and for one with fields that another version does not have.
    """

    def __init__(
        self, own: str, versions: Mapping[str, Version], convert: Callable[[Any, Version, Version], Any] | None = None
    ) -> None:
        """Take the versions. `convert(object, source version, target version)` replaces the way through the stored
        version.
        """
        self._own = versions[own]
        self._versions = versions
        self._convert = convert or _by_hub

    def __call__(self, obj: Any, api_version: str) -> tuple[OwnedKind, Any] | None:
        target = self._versions.get(api_version)
        if target is None:
            return None
        kind = target.kind
        if not isinstance(obj, dict):
            if target is self._own:
                return kind, obj
            found = self._convert(obj, self._own, target)
            validate(kind.schema.root, kind.owned(found))
            return kind, found
        if obj.get("apiVersion") == api_version:
            return kind, obj
        source = self._versions.get(str(obj.get("apiVersion")))
        if source is None:
            return None
        read = source.kind.from_applied(obj).obj
        converted: Plain = kind.owned(read if source is target else self._convert(read, source, target))
        validate(kind.schema.root, converted)
        return kind, {**converted, "apiVersion": api_version, "kind": obj.get("kind")}


def _by_hub(obj: Any, source: Version, target: Version) -> Any:
    hub = obj if source.to_hub is None else source.to_hub(obj)
    return hub if target.from_hub is None else target.from_hub(hub)
