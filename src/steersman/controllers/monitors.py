"""Monitors: metadata informers for every resource that supports deletion, kept current as resources appear and
disappear.

The garbage collector and the quota controller share the monitors. A resource that another controller follows anyway
uses that controller's informer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any, Final

from steersman.api.meta.v1 import ObjectMeta, PartialObjectMetadata
from steersman.client.api_resource import APIResource, Object
from steersman.client.client import Client
from steersman.client.discovery import preferred_resources
from steersman.client.informer import Informer, Informers
from steersman.client.transport import Unreachable
from steersman.controllers.aggregated_servers import AggregatedServers
from steersman.machinery.errors.status import StatusError
from steersman.work import simulated_time
from steersman.work.backoff import Backoff, Retries
from steersman.work.upkeep import upkeep

logger = logging.getLogger(__name__)

_NEEDED: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
_DISCOVERY_INTERVALS: Final = Backoff(1.0, 30.0)
"""Seconds between two discoveries: short after a change, because discovery lags behind it, and after a failure."""
_SOON: Final = 0.1
_MAX_AGGREGATED_BYTES: Final = 64 << 20
"""Most JSON bytes of a resource of an aggregated server; a larger resource is not followed."""
_DEFINING: Final = (
    APIResource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        PartialObjectMetadata,
        namespaced=False,
    ),
    APIResource("apiregistration.k8s.io", "v1", "apiservices", "APIService", PartialObjectMetadata, namespaced=False),
)
"""Resources whose changes trigger a discovery at once."""

ChangeHandler = Callable[[APIResource[PartialObjectMetadata], ObjectMeta | None, ObjectMeta | None], None]


class Monitors:
    """Follows the metadata of all resources after `start()`, and notifies subscribers of each change."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._shared = informers
        self._others = AggregatedServers(informers)
        self._change_handlers: list[ChangeHandler] = []
        self._resource_handlers: list[Callable[[APIResource[PartialObjectMetadata]], None]] = []
        self._monitors: dict[APIResource[PartialObjectMetadata], Informer[Any]] = {}
        self._own_informers: list[Informer[PartialObjectMetadata]] = []
        """Informers of resources that no other controller follows."""
        self._kinds: dict[tuple[str, str], APIResource[PartialObjectMetadata]] = {}
        self._rediscover = asyncio.Event()
        self._discovered = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def on_change(self, handler: ChangeHandler) -> None:
        """Subscribe `handler(resource, old, new)`, which is called with the metadata at each change. Only before
        `start()`.
        """
        assert self._task is None
        self._change_handlers.append(handler)

    def on_resource(self, added: Callable[[APIResource[PartialObjectMetadata]], None]) -> None:
        """Subscribe `added`, which is called with each newly followed resource. Only before `start()`."""
        assert self._task is None
        self._resource_handlers.append(added)

    def start(self) -> None:
        """Start to follow all resources. Further calls do nothing."""
        if self._task is not None:
            return
        self._task = asyncio.create_task(self._track_served_resources(), name="monitors of all resources")
        for each in _DEFINING:
            self._shared.for_resource(each).on_change(lambda *_: self._rediscover.set())

    async def stop(self) -> None:
        """Stop all monitors."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for each in self._own_informers:
            await each.stop()

    def resource_of(self, group: str, kind: str) -> APIResource[PartialObjectMetadata] | None:
        """Return the followed resource of a kind, None if it is not followed."""
        return self._kinds.get((group, kind))

    def has(self, resource: APIResource[PartialObjectMetadata], namespace: str, name: str, uid: str) -> bool:
        """Return True if a monitor has the object."""
        monitor = self._monitors.get(resource)
        found = None if monitor is None else monitor.get(namespace, name)
        return found is not None and found.metadata.uid == uid

    def followed(self) -> Collection[tuple[APIResource[PartialObjectMetadata], Informer[Any]]]:
        """Return the followed resources with their informers."""
        return self._monitors.items()

    async def _track_served_resources(self) -> None:
        looks, was_all = Retries(_DISCOVERY_INTERVALS), True
        while True:
            is_all = False
            try:
                is_all = await self._refresh()
                self._discovered.set()
            except (StatusError, Unreachable) as error:
                logger.warning("discovery of the served resources failed: %s", error)
            if was_all and not is_all:
                looks.reset()
            was_all = is_all
            try:
                with upkeep():
                    async with simulated_time.timeout(looks.next()):
                        await self._rediscover.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(_SOON)
            self._rediscover.clear()
            looks.reset()

    async def _refresh(self) -> bool:
        """Follow the resources that are served now. Return False if discovery of a group version failed."""
        resources = await preferred_resources(self._client)
        desired = {
            each.resource
            for each in resources.served
            if each.verbs >= _NEEDED and (each.resource.group, each.resource.plural) not in _IGNORED
        }
        if resources.failed:
            lost = set(resources.failed)
            desired |= {each for each in self._monitors if each.api_version in lost}
        for resource in self._monitors.keys() - desired:
            self._kinds.pop((resource.group, resource.kind), None)
            monitor = self._monitors.pop(resource)
            if monitor in self._own_informers:
                self._own_informers.remove(monitor)
                await monitor.stop()
        for resource in desired - self._monitors.keys():
            self._add(resource)
        return not resources.failed

    def _add(self, resource: APIResource[PartialObjectMetadata]) -> None:
        monitor: Informer[Any] | None = self._shared.find_whole(resource)
        if monitor is None:
            monitor = Informer(
                self._client,
                resource,
                transform=_only_ownership,
                most_bytes=_MAX_AGGREGATED_BYTES if self._others.serves(resource) else 0,
            )
            monitor.start()
            self._own_informers.append(monitor)
        self._monitors[resource] = monitor
        self._kinds[resource.group, resource.kind] = resource

        def changed(old: Object | None, new: Object | None) -> None:
            if self._monitors.get(resource) is monitor:
                before, after = old.metadata if old else None, new.metadata if new else None
                for handler in self._change_handlers:
                    handler(resource, before, after)

        monitor.on_change(changed)
        for added in self._resource_handlers:
            added(resource)

    async def wait_until_synced(self) -> None:
        """Return once the served resources are known and all their informers have synced."""
        await self._discovered.wait()
        for each in list(self._monitors.values()):
            await each.wait_until_synced()


def _only_ownership(obj: PartialObjectMetadata) -> None:
    """Drop the metadata that neither ownership nor quotas depend on."""
    metadata = obj.metadata
    metadata.labels, metadata.annotations, metadata.generate_name = {}, {}, ""
    metadata.creation_timestamp = None
