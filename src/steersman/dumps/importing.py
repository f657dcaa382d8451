"""Import of a running cluster: reads all its objects into one file, without writing to the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from steersman.client.api_resource import APIResource
from steersman.client.client import Client, Pages, decoded
from steersman.client.discovery import DiscoveredResource, preferred_resources
from steersman.client.errors import is_not_found
from steersman.client.resources import API_SERVICES
from steersman.client.transport import Unreachable
from steersman.dumps.fields import LeftOut, leave_out
from steersman.dumps.reading import MOST_BYTES, MOST_OBJECTS
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.errors.status import StatusError

_PAGE: Final = 500
_MOST_OF_RESOURCE: Final = 2 * MOST_BYTES
"""Most bytes of the objects of one resource, of which fields may be left out."""
_FIRST: Final = ("namespaces", "customresourcedefinitions.apiextensions.k8s.io")
"""Resources that come first in the file, as others need them."""
_TWICE: Final = frozenset({"events.events.k8s.io"})
"""Resources whose objects another resource has, too."""
_NOT_STORED: Final = frozenset({"componentstatuses"})
METRICS: Final = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})
"""Groups of measurements, which are not stored."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation that repeats an object, with the values of a Secret."""
_REFUSED: Final = frozenset({401, 403, 404, 405, 503})
"""Status codes of resources that are left out, as they cannot be read."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


class _Object(msgspec.Struct):
    """Members of every object."""

    metadata: dict[str, Any]
    kind: str = ""


PAGE_DECODER: Final = msgspec.json.Decoder(_Page)
"""Decoder of a page of a list, whose items stay JSON."""
_OBJECT: Final = msgspec.json.Decoder(_Object)


class _Unreadable(NamedTuple):
    """A resource that could not be read, and the server's message."""

    resource: str
    why: str


@dataclass(slots=True)
class Imported:
    """Result of an import."""

    objects: int = 0
    resources: int = 0
    revision: str = ""
    """Revision of the cluster at which the objects were read."""
    later: list[str] = field(default_factory=list)
    """Resources that the server could only list as of a later moment."""
    unread: list[_Unreadable] = field(default_factory=list)


class NothingToImport(Exception):
    """The error of a cluster of which the user may read nothing. The text is one line."""


async def import_cluster(
    client: Client,
    write: Callable[[bytes], object],
    *,
    secrets: bool,
    fields: Sequence[LeftOut] = (),
    progress: Callable[[str], object] = lambda _: None,
) -> Imported:
    """Write a v1 List of all objects of a cluster, one object a line.

    All resources are listed as of one revision, so the objects fit together. Without `secrets` the values of Secrets
    are empty. `progress` is called with the name of each resource. Raises StatusError, Unreachable, NothingToImport.
    """
    done = Imported()
    done.revision = await _newest_revision(client)
    head = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": done.revision}}
    write(encode_in_order(head)[:-1] + b',"items":[')
    separator, written = b"\n", 0
    for each in await resources_of(client):
        name = str(each.resource.group_resource)
        progress(name)
        cuts = [one.path for one in fields if one.resource in ("", name, each.resource.plural)]
        done.resources += 1
        try:
            for item in await _items(client, each.resource, done):
                line = await decoded(partial(_written, each.resource, cuts, secrets), bytes(item))
                written += len(line)
                if written > MOST_BYTES:
                    raise Unreachable(f"more than {MOST_BYTES >> 20} MiB, which no dump may have: use --leave-out")
                write(separator)
                write(line)
                separator = b",\n"
                done.objects += 1
        except StatusError as error:
            if error.code not in _REFUSED:
                raise
            done.unread.append(_Unreadable(name, str(error)))
    write(b"\n]}\n")
    if not done.objects:
        why = done.unread[0].why if done.unread else "it serves no resource"
        raise NothingToImport(f"nothing of the cluster can be read: {why}")
    return done


async def _newest_revision(client: Client) -> str:
    """Return the newest revision of the cluster, "" if it cannot be read. Raises StatusError, Unreachable."""
    try:
        data = await client.request("GET", "/api/v1/namespaces?limit=1")
    except StatusError as error:
        if error.code not in _REFUSED:
            raise
        return ""
    return (await decoded(PAGE_DECODER.decode, data)).metadata.resource_version


async def resources_of(client: Client) -> list[DiscoveredResource]:
    """Return the resources that are stored, in the order in which an import writes them. Raises StatusError, Unreachable."""
    elsewhere = await _groups_of_other_servers(client)
    found = [
        each
        for each in (await preferred_resources(client)).served
        if {"list", "get"} <= each.verbs
        and str(each.resource.group_resource) not in _TWICE | _NOT_STORED
        and (each.resource.group, each.resource.version) not in elsewhere
        and each.resource.group not in METRICS
    ]

    def order(each: DiscoveredResource) -> tuple[int, str, str]:
        name = str(each.resource.group_resource)
        return (_FIRST.index(name) if name in _FIRST else len(_FIRST), each.resource.group, each.resource.plural)

    return sorted(found, key=order)


async def _groups_of_other_servers(client: Client) -> set[tuple[str, str]]:
    """Return groups and versions that aggregated servers serve, whose objects are not the cluster's own."""
    try:
        services = (await client.list(API_SERVICES)).items
    except StatusError as error:
        if error.code not in _REFUSED and not is_not_found(error):
            raise
        return set()
    return {(each.spec.group, each.spec.version) for each in services if each.spec.service is not None}


async def _items(client: Client, resource: APIResource[Any], done: Imported) -> list[msgspec.Raw]:
    """Return the JSON of all objects of a resource, as of the import's revision if the server has it.

    Raises StatusError, Unreachable.
    """
    if done.revision:
        exact = {"resourceVersion": done.revision, "resourceVersionMatch": "Exact"}
        try:
            return await _pages(client, resource, exact)
        except StatusError as error:
            if error.code in _REFUSED:
                raise
        # The revision is compacted, or is no revision of this resource's storage.
        done.later.append(str(resource.group_resource))
    return await _pages(client, resource, {})


async def _pages(client: Client, resource: APIResource[Any], query: dict[str, str]) -> list[msgspec.Raw]:
    items: list[msgspec.Raw] = []
    pages, size = Pages(resource), 0
    while pages.more:
        data = await client.request("GET", f"{resource.path()}?{urlencode({'limit': str(_PAGE), **query})}")
        size += len(data)
        if size > _MOST_OF_RESOURCE:
            raise Unreachable(f"{resource.group_resource}: more than {_MOST_OF_RESOURCE >> 20} MiB of objects")
        page = await decoded(PAGE_DECODER.decode, data)
        items += page.items or ()
        if len(items) > MOST_OBJECTS:
            raise Unreachable(f"{resource.group_resource}: more than {MOST_OBJECTS} objects, which no dump may have")
        pages.advance(page.metadata.continue_)
        query = {"continue": pages.token}
    return items


def _written(resource: APIResource[Any], cuts: Sequence[tuple[str, ...]], secrets: bool, item: bytes) -> bytes:
    """Return an object as one line of JSON with kind and apiVersion. Raises msgspec.DecodeError if it is no object."""
    hides = not secrets and resource.plural == "secrets" and not resource.group
    data = item.strip(b" \t\r\n")
    found = _OBJECT.decode(data)
    if not cuts and not hides and b"\n" not in data:
        if found.kind:
            return data
        return encode_in_order({"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b"," + data[1:]
    plain = {"kind": resource.kind, "apiVersion": resource.api_version, **decode_plain(data)}
    if hides:
        empty_values(plain)
    for path in cuts:
        leave_out(plain, path)
    return encode_in_order(plain)


def empty_values(secret: dict[str, Any]) -> None:
    """Remove the values from a Secret, also those that an annotation repeats."""
    for name in ("data", "stringData"):
        if name in secret:
            secret[name] = dict.fromkeys(secret[name], "") if isinstance(secret[name], dict) else {}
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        annotations.pop(_LAST_APPLIED, None)
