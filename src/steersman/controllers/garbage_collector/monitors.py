"""Metadata of every object of every resource that can be deleted, followed as resources come and go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from steersman.api.meta.v1 import ObjectMeta, PartialObjectMetadata
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.discovery import preferred_resources
from steersman.client.informer import Informer, Informers
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError

logger = logging.getLogger(__name__)

_NEEDED: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
_AGAIN_AFTER: Final = 30.0
"""Seconds until it is looked whether there are other resources."""
_SOON: Final = 0.1
_DEFINING: Final = (
    APIResource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", PartialObjectMetadata,
        namespaced=False,
    ),
    APIResource("apiregistration.k8s.io", "v1", "apiservices", "APIService", PartialObjectMetadata, namespaced=False),
)  # fmt: skip
"""A change of these is a reason to look at once."""

Told = Callable[[APIResource[PartialObjectMetadata], ObjectMeta | None, ObjectMeta | None], None]


class Monitors:
    """Follows all resources: `told(resource, old, new)` is called with each change of an object's metadata."""

    def __init__(self, client: Client, informers: Informers, told: Told) -> None:
        self._client = client
        self._shared = informers
        self._told = told
        self._monitors: dict[APIResource[PartialObjectMetadata], Informer[PartialObjectMetadata]] = {}
        self._kinds: dict[tuple[str, str], APIResource[PartialObjectMetadata]] = {}
        self._look = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to follow."""
        self._task = asyncio.create_task(self._follow(), name="monitors of the garbage collector")
        for each in _DEFINING:
            self._shared.of(each).on_change(lambda *_: self._look.set())

    async def stop(self) -> None:
        """Ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for each in self._monitors.values():
            await each.stop()

    def resource_of(self, group: str, kind: str) -> APIResource[PartialObjectMetadata] | None:
        """The resource of a kind, of those that are followed."""
        return self._kinds.get((group, kind))

    async def _follow(self) -> None:
        while True:
            try:
                await self._put_right()
            except (StatusError, Unreachable) as error:
                logger.warning("what is served cannot be found out: %s", error)
            try:
                async with asyncio.timeout(_AGAIN_AFTER):
                    await self._look.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(_SOON)
            self._look.clear()

    async def _put_right(self) -> None:
        found = await preferred_resources(self._client)
        wanted = {
            each.resource for each in found.served
            if each.verbs >= _NEEDED and (each.resource.group, each.resource.plural) not in _IGNORED
        }  # fmt: skip
        if found.failed:
            lost = set(found.failed)
            wanted |= {each for each in self._monitors if each.api_version in lost}
        for resource in self._monitors.keys() - wanted:
            self._kinds.pop((resource.group, resource.kind), None)
            await self._monitors.pop(resource).stop()
        for resource in wanted - self._monitors.keys():
            self._add(resource)

    def _add(self, resource: APIResource[PartialObjectMetadata]) -> None:
        monitor = self._monitors[resource] = Informer(self._client, resource, transform=_only_ownership)
        self._kinds[resource.group, resource.kind] = resource

        def changed(old: PartialObjectMetadata | None, new: PartialObjectMetadata | None) -> None:
            self._told(resource, old.metadata if old else None, new.metadata if new else None)

        monitor.on_change(changed)
        monitor.start()

    async def synced(self) -> None:
        """Returns once all resources that are followed now have all their objects."""
        for each in list(self._monitors.values()):
            await each.synced()


def _only_ownership(obj: PartialObjectMetadata) -> None:
    """Forgets what ownership does not depend on."""
    metadata = obj.metadata
    metadata.labels, metadata.annotations, metadata.generate_name = {}, {}, ""
    metadata.creation_timestamp = None
