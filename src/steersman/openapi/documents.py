"""The present documents of a server: of its catalogue, its other paths, and other servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from steersman.openapi.builder import (
    Document,
    group_document,
    group_version_document,
    path_documents,
    root_documents,
)
from steersman.openapi.fragments import Fragments
from steersman.openapi.part_cache import PartCache
from steersman.openapi.schemas import Schemas
from steersman.openapi.sources import Source
from steersman.server.server import Server
from steersman.work.offloading import offload_if
from steersman.work.threads import give_way


class Documents:
    """The documents of the served resources by name. Those of a group are cached until the group changes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._by_group: dict[str, list[Document]] = {}
        self._roots: Final = root_documents()
        self._of_paths: Final = {f"/{each.name}": each for each in path_documents()}
        self._catalogue: dict[str, Document] | None = None
        server.catalogue.subscribe(self._changed)

    def _changed(self, group: str) -> None:
        self._by_group.pop(group, None)
        self._catalogue = None

    def all(self) -> dict[str, Document]:
        """Return all present documents by name."""
        if self._catalogue is None:
            is_core_served = self._server.catalogue.group("") is not None
            found = [each for each in self._roots if is_core_served or each.name != "api"]
            for group in self._server.catalogue.groups():
                known = self._by_group.get(group.name)
                if known is None:
                    self._by_group[group.name] = known = self._of_group(group.name, group.versions)
                found += known
            self._catalogue = {each.name: each for each in found}
        paths = self._server.paths
        return self._catalogue | {each.name: each for path, each in self._of_paths.items() if path in paths}

    def _of_group(self, group: str, versions: tuple[str, ...]) -> list[Document]:
        catalogue = self._server.catalogue
        found = [group_version_document(group, version, catalogue.resources(group, version)) for version in versions]
        if group and not all(each.is_custom for each in found):
            found.append(group_document(group))
        return found


async def compute_etags(documents: Iterable[Source]) -> None:
    """Compute missing ETags in a worker thread, because the schemas must be serialized for them."""
    unknown = [each for each in documents if isinstance(each, Document) and not each.has_etag]
    if unknown:
        await offload_if(True, _compute_etags, unknown)


def _compute_etags(documents: Iterable[Document]) -> None:
    for each in documents:
        give_way()
        _ = each.etag


class Parts:
    """The parts of the v2 document, each cached until it changes."""

    def __init__(self, kept: PartCache) -> None:
        self._shared: Final = kept
        self._kept: dict[str, tuple[str, Fragments]] = {}

    async def of(self, documents: Mapping[str, Document]) -> list[Fragments]:
        """Return the parts of these documents, built one after the other in worker threads, and evict all others."""
        shared = Schemas(self._shared)
        kept: dict[str, tuple[str, Fragments]] = {}
        for name, document in documents.items():
            known = self._kept.get(name)
            if known is None or known[0] != document.etag:
                known = document.etag, await offload_if(True, document.fragments, shared)
            kept[name] = known
        self._kept = kept
        return [fragments for _, fragments in kept.values()]
