"""Which resources serve objects of a kind, and which serve the same objects (upstream's RESTMapper and
EquivalentResourceMapper)."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.endpoints.discovery import ServedResource
from steersman.machinery.identity.schema import GroupVersionKind


class RESTMapper:
    """Filled by a Catalogue, asked by what has to be made before there is one: admission plugins."""

    def __init__(self) -> None:
        self._by_kind: dict[GroupVersionKind, list[ServedResource]] = {}
        self._by_resource: dict[tuple[str, str, str], ServedResource] = {}
        """By group, version and plural."""
        self.revision = 0
        """Another number after each change."""

    def of_kind(self, gvk: GroupVersionKind) -> Sequence[ServedResource]:
        """The resources whose objects are of a kind (upstream's RESTMapping)."""
        return self._by_kind.get(gvk, ())

    def plural_of(self, gvk: GroupVersionKind) -> str | None:
        """The plural of the resource whose objects are of a kind, None if none is served."""
        found = self.of_kind(gvk)
        return found[0].resource.plural if found else None

    def of_resource(self, group: str, version: str, plural: str) -> ServedResource | None:
        """A resource in a version it is served in."""
        return self._by_resource.get((group, version, plural))

    def equivalents(self, group: str, version: str, plural: str) -> Sequence[ServedResource]:
        """The same objects in the other versions, or groups, that serve them."""
        own = self.of_resource(group, version, plural)
        if own is None:
            return ()
        found = (self.of_resource(each.group, each.version, plural) for each in own.resource.versions)
        return [each for each in found if each is not None and each.form is not own.form]

    def add(self, served: ServedResource) -> None:
        """A resource is served from now on."""
        self._by_kind.setdefault(served.form.gvk, []).append(served)
        self._by_resource[served.group, served.version, served.resource.plural] = served
        self.revision += 1

    def remove(self, served: ServedResource) -> None:
        """A resource is served no more."""
        gvk = served.form.gvk
        found = self._by_kind[gvk]
        found.remove(served)
        if not found:
            del self._by_kind[gvk]
        key = served.group, served.version, served.resource.plural
        if self._by_resource.get(key) is served:
            del self._by_resource[key]
        self.revision += 1
