"""Comparison of a whole cluster at two revisions, by exact lists."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from steersman.client.api_resource import APIResource
from steersman.client.client import Client, Pages, decoded
from steersman.client.discovery import DiscoveredResource
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.errors.status import StatusError
from steersman.server.history.entries import changes_of
from steersman.work.yielding import TimeSlice

_PAGE: Final = 500
_NOISE: Final = frozenset(
    {("", "events"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases"), ("", "componentstatuses")}
)
"""Resources that change all the time, or are not stored."""
_HEARTBEATS: Final = ("lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "observedGeneration", "renewTime")
"""Members whose change alone is not worth a line."""
_UNLISTED: Final = frozenset({403, 404, 405})


class ObjectChange(Struct, omit_defaults=True):
    """An object that differs between two revisions; `type` is ADDED, REMOVED or CHANGED."""

    type: str
    resource: str
    kind: str
    namespace: str
    name: str
    changes: list[dict[str, Any]] = []
    more: int = 0


class _Metadata(Struct):
    name: str = ""
    namespace: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Head(Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _ListMetadata(Struct):
    next_page: str = msgspec.field(name="continue", default="")


class _List(Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


_LISTS: Final = msgspec.json.Decoder(_List)
_HEADS: Final = msgspec.json.Decoder(_Head)


async def compare(
    client: Client,
    resources: Iterable[DiscoveredResource],
    revisions: tuple[int, int],
    *,
    namespace: str = "",
    noise: bool = False,
    secrets: bool = False,
    unread: list[str],
) -> AsyncIterator[ObjectChange]:
    """Yield the differences of the resources' objects, kind by kind. `unread` takes resources that cannot be listed.

    With `noise` also events, leases and heartbeats. Raises StatusError 410 for a revision that is not kept.
    """
    for each in resources:
        resource = each.resource
        if "list" not in each.verbs or (namespace and not resource.namespaced):
            continue
        if not noise and (resource.group, resource.plural) in _NOISE:
            continue
        hides = resource.plural == "secrets" and not resource.group and not secrets
        try:
            before = await _objects(client, resource, namespace, revisions[0])
            after = await _objects(client, resource, namespace, revisions[1])
        except StatusError as error:
            if error.code not in _UNLISTED:
                raise
            unread.append(f"{resource.group_resource}: {error.message}")
            continue
        time_slice = TimeSlice()
        async for found in _differing(resource, before, after, hides=hides, noise=noise):
            yield found
            await time_slice.pause_if_over()


async def _objects(
    client: Client, resource: APIResource[Any], namespace: str, revision: int
) -> dict[tuple[str, str], tuple[str, msgspec.Raw]]:
    """Return version and encoded object by namespace and name, as of a revision."""
    found: dict[tuple[str, str], tuple[str, msgspec.Raw]] = {}
    pages = Pages(resource)
    query: dict[str, object] = {"limit": _PAGE, "resourceVersion": revision, "resourceVersionMatch": "Exact"}
    while pages.more:
        data = await client.request("GET", f"{resource.path(namespace)}?{urlencode(query)}")
        objects, token = await decoded(_page, data)
        found |= objects
        pages.advance(token)
        query = {"limit": _PAGE, "continue": token}
    return found


def _page(data: bytes) -> tuple[dict[tuple[str, str], tuple[str, msgspec.Raw]], str]:
    """Return the objects of a page, and the continue token of the next one. Raises errors of decoders."""
    page = _LISTS.decode(data)
    heads = [(_HEADS.decode(item).metadata, item) for item in page.items or ()]
    found = {(head.namespace, head.name): (head.resource_version, item) for head, item in heads}
    return found, page.metadata.next_page


async def _differing(
    resource: APIResource[Any],
    before: dict[tuple[str, str], tuple[str, msgspec.Raw]],
    after: dict[tuple[str, str], tuple[str, msgspec.Raw]],
    *,
    hides: bool,
    noise: bool,
) -> AsyncIterator[ObjectChange]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and old[0] == new[0]:
            continue
        kind = "ADDED" if old is None else "REMOVED" if new is None else "CHANGED"
        object_change = ObjectChange(kind, str(resource.group_resource), resource.kind, key[0], key[1])
        if old is not None and new is not None:
            values = [await decoded(decode_plain, bytes(each)) for each in (old[1], new[1])]
            shown = changes_of(values[0], values[1], hides=hides)
            object_change.changes = [each for each in shown["changes"] if noise or not _is_heartbeat(each["path"])]
            object_change.more = shown.get("moreChanges", 0)
            if not object_change.changes and not object_change.more:
                continue
        yield object_change


def _is_heartbeat(path: str) -> bool:
    return path.rpartition(".")[2] in _HEARTBEATS


def chosen(served: Sequence[DiscoveredResource], kinds: Sequence[str]) -> list[DiscoveredResource]:
    """Return the resources with these names, all if there are none. Raises UnknownKind."""
    from steersman.explain.kind_names import find_resource

    return [find_resource(kind, served) for kind in kinds] if kinds else list(served)
