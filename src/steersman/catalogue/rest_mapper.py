"""Which resources serve objects of a kind (upstream's RESTMapper)."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.endpoints.discovery import ServedResource
from steersman.machinery.identity.schema import GroupVersionKind


class RESTMapper:
    """Filled by a Catalogue, asked by what has to be made before there is one: admission plugins."""

    def __init__(self) -> None:
        self._by_kind: dict[GroupVersionKind, list[ServedResource]] = {}

    def of_kind(self, gvk: GroupVersionKind) -> Sequence[ServedResource]:
        """The resources whose objects are of a kind (upstream's RESTMapping)."""
        return self._by_kind.get(gvk, ())

    def add(self, served: ServedResource) -> None:
        """A resource is served from now on."""
        self._by_kind.setdefault(served.form.gvk, []).append(served)

    def remove(self, served: ServedResource) -> None:
        """A resource is served no more."""
        gvk = served.form.gvk
        found = self._by_kind[gvk]
        found.remove(served)
        if not found:
            del self._by_kind[gvk]
