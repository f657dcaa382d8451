"""The map from kinds to resources, and from a resource to those that serve the same objects.

Follows upstream's RESTMapper and EquivalentResourceMapper.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.endpoints.discovery import ServedResource
from steersman.machinery.identity.schema import GroupVersionKind


class RESTMapper:
    """The mapper of a Catalogue, separate so that admission plugins, which are made before the catalogue, can use it."""

    def __init__(self) -> None:
        self._by_kind: dict[GroupVersionKind, list[ServedResource]] = {}
        self._by_resource: dict[tuple[str, str, str], ServedResource] = {}
        """Resources by group, version and plural."""
        self.revision = 0
        """A number that changes with each change of the mapper."""

    def resources_for(self, gvk: GroupVersionKind) -> Sequence[ServedResource]:
        """Return the resources that serve objects of a kind (upstream's RESTMapping)."""
        return self._by_kind.get(gvk, ())

    def versions_with(self, kind: str) -> list[str]:
        """Return the group versions, of whatever group, that serve a kind of this name."""
        return [str(each.group_version) for each in self._by_kind if each.kind == kind]

    def plural_for(self, gvk: GroupVersionKind) -> str | None:
        """Return the plural of the resource that serves a kind, None if there is none."""
        found = self.resources_for(gvk)
        return found[0].resource.plural if found else None

    def get(self, group: str, version: str, plural: str) -> ServedResource | None:
        """Return a resource in a version, None if it is not served in it."""
        return self._by_resource.get((group, version, plural))

    def equivalents(self, group: str, version: str, plural: str) -> Sequence[ServedResource]:
        """Return the resources that serve the same objects in other versions or groups."""
        own = self.get(group, version, plural)
        if own is None:
            return ()
        found = (self.get(each.group, each.version, plural) for each in own.resource.versions)
        return [each for each in found if each is not None and each.form is not own.form]

    def add(self, served: ServedResource) -> None:
        """Add a resource that is now served."""
        self._by_kind.setdefault(served.form.gvk, []).append(served)
        self._by_resource[served.group, served.version, served.resource.plural] = served
        self.revision += 1

    def remove(self, served: ServedResource) -> None:
        """Remove a resource that is no longer served."""
        gvk = served.form.gvk
        found = self._by_kind[gvk]
        found.remove(served)
        if not found:
            del self._by_kind[gvk]
        key = served.group, served.version, served.resource.plural
        if self._by_resource.get(key) is served:
            del self._by_resource[key]
        self.revision += 1
