"""Garbage collector: it deletes objects without owners, in the background or foreground, and orphans dependents."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from steersman.api.core.v1 import ObjectReference
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta, OwnerReference, PartialObjectMetadata, Preconditions
from steersman.client.api_resource import APIResource
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.controllers.aggregated_servers import AggregatedServerLimit, AggregatedServers
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.garbage_collector.graph import (
    FOREGROUND,
    ORPHAN,
    Graph,
    Node,
    group_of,
    is_deleting_dependents,
)
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.errors.status import StatusError
from steersman.work.bounded_cache import BoundedSet
from steersman.work.work_queue import TryLater
from steersman.work.yielding import TimeSlice, time_sliced

_TO_DELETE: Final = "delete"
_TO_ORPHAN: Final = "orphan"
_MANY: Final = 500
"""Number of owners above which an object is added to the graph in time slices, as it takes some milliseconds."""
_MAX_ABSENT: Final = 1 << 15
"""Most remembered owners that do not exist: somewhat more than one object can name."""

_Identity = tuple[str, str, str, str, str]
"""Group, kind, namespace, name and uid of an owner in a reference. An absent owner stays absent until a monitor reports
it: only restoring a snapshot brings a uid back.
"""


class GarbageCollector(Controller[tuple[str, str]]):
    """Garbage collector. A key is the action (to delete, to orphan) and the uid of an object."""

    name = "garbage-collector-controller"
    account = "generic-garbage-collector"
    component = "garbage-collector-controller"
    workers = 20

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self.graph = Graph(
            lambda uid: self.queue.add((_TO_DELETE, uid)),
            lambda uid: self.queue.add((_TO_ORPHAN, uid)),
            self._record_invalid_owner,
        )
        self._limit = AggregatedServerLimit(AggregatedServers(self.informers), self.workers // 2)
        self._absent: BoundedSet[_Identity] = BoundedSet(_MAX_ABSENT)
        self._changes: deque[Iterator[None]] = deque()
        """Changes that are not in the graph yet, because an object with many owners is being added."""
        self._changes_arrived = asyncio.Event()
        self._monitors = dependencies.monitors
        self._monitors.on_change(self._changed)

    async def run(self) -> None:
        self._monitors.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._apply_changes(), name="changes of the graph of owners")
            group.create_task(super().run(), name=self.name)

    def _changed(
        self, resource: APIResource[PartialObjectMetadata], old: ObjectMeta | None, new: ObjectMeta | None
    ) -> None:
        if old is None and new is not None:
            self._absent.discard((resource.group, resource.kind, new.namespace, new.name, new.uid))
        change = (
            self.graph.put_in_steps(resource, new)
            if new is not None
            else self.graph.remove_in_steps(old.uid)
            if old
            else None
        )
        if change is None:
            return
        if self._changes or max(len(each.owner_references) for each in (old, new) if each is not None) > _MANY:
            self._changes.append(change)
            self._changes_arrived.set()
        else:
            deque(change, maxlen=0)

    async def _apply_changes(self) -> None:
        time_slice = TimeSlice()
        while True:
            while self._changes:
                for _ in self._changes[0]:
                    await time_slice.pause_if_over()
                self._changes.popleft()
            self._changes_arrived.clear()
            await self._changes_arrived.wait()
            time_slice = TimeSlice()

    def _record_invalid_owner(self, node: Node, reference: OwnerReference) -> None:
        about = ObjectReference(
            kind=node.kind, api_version=node.api_version, namespace=node.namespace, name=node.name, uid=node.uid
        )
        named = (
            f"[{reference.api_version}/{reference.kind}, namespace: {node.namespace}, name: {reference.name}, "
            f"uid: {reference.uid}]"
        )
        text = f'ownerRef {named} does not exist in namespace "{node.namespace}"'
        self.recorder.event(about, "Warning", "OwnerRefInvalidNamespace", text)

    async def sync(self, key: tuple[str, str]) -> None:
        what, uid = key
        node = self.graph.get(uid)
        if node is None:
            return
        if not node.observed:
            if what == _TO_DELETE and not node.absent:
                await self._check_unobserved(node)
        elif what == _TO_ORPHAN:
            await self._orphan(node)
        elif node.deleting_dependents:
            await self._continue_foreground(node)
        elif not node.being_deleted and node.owners:
            await self._attempt_to_delete(node)

    async def _check_unobserved(self, node: Node) -> None:
        """Check at the server that an owner exists which no monitor has reported. Raises TryLater if it does."""
        resource = self._resource_of(node.api_version, node.kind)
        namespace = node.namespace if resource.namespaced else ""
        if resource.namespaced and not namespace:
            return  # without a namespace it cannot be found; its dependents stay, as upstream
        if await self._current_owner(resource, node.name, namespace, node.uid) is None:
            self.graph.remove(node.uid)
        else:
            raise TryLater(f"no monitor has reported {node} yet")

    def _resource_of(self, api_version: str, kind: str) -> APIResource[PartialObjectMetadata]:
        resource = self._monitors.resource_of(group_of(api_version), kind)
        if resource is None:
            raise TryLater(f'no matches for kind "{kind}" in version "{api_version}"')
        return resource

    async def _find_metadata(
        self, resource: APIResource[PartialObjectMetadata], name: str, namespace: str, uid: str
    ) -> ObjectMeta | None:
        """Return the current metadata of an object, None if it is gone or has another uid."""
        async with self._limit.request(resource, namespace):
            stored = await self.client.find(resource, name, namespace)
        return None if stored is None or stored.metadata.uid != uid else stored.metadata

    async def _latest(self, node: Node) -> ObjectMeta | None:
        assert node.resource is not None
        metadata = await self._find_metadata(node.resource, node.name, node.namespace, node.uid)
        if metadata is None:
            self._forget(node, node.resource)
        return metadata

    def _forget(self, node: Node, resource: APIResource[PartialObjectMetadata]) -> None:
        """Remove an object that the server did not have. If a monitor has it, its next event decides: it is removed, or
        it has come back meanwhile.
        """
        if not self._monitors.has(resource, node.namespace, node.name, node.uid):
            self.graph.remove(node.uid)

    # Deletion

    async def _attempt_to_delete(self, node: Node) -> None:
        """Delete an object without existing owners, or remove its references to missing owners."""
        if all(self._is_solid(node, each) for each in node.owners):
            return
        latest = await self._latest(node)
        if latest is None or not latest.owner_references:
            return
        solid: list[OwnerReference] = []
        waiting: list[OwnerReference] = []
        async for reference in time_sliced(latest.owner_references):
            if self._is_solid(node, reference):
                solid.append(reference)
                continue
            owner = await self._owner(node, reference)
            if owner is not None:
                (waiting if is_deleting_dependents(owner) else solid).append(reference)
        if solid:
            if len(solid) < len(latest.owner_references):
                await self._put_owners(node, latest, solid)
        elif waiting and node.dependents:
            if any(each.deleting_dependents for each in node.dependents.values()):
                await self._unblock_owners(node, latest)
                latest.resource_version = ""
            await self._delete(node, latest, "Foreground")
        else:
            await self._delete(node, latest, _policy(latest))

    def _is_solid(self, node: Node, reference: OwnerReference) -> bool:
        """Return True if the graph has the owner and it is not deleting its dependents."""
        owner = self.graph.get(reference.uid)
        if owner is None or not owner.observed or owner.deleting_dependents:
            return False
        return owner.matches(reference, node.namespace)

    async def _owner(self, node: Node, reference: OwnerReference) -> ObjectMeta | None:
        resource = self._resource_of(reference.api_version, reference.kind)
        if resource.namespaced and not node.namespace:
            return ObjectMeta()  # an impossible owner counts as existing, so that the object stays, as upstream
        namespace = node.namespace if resource.namespaced else ""
        return await self._current_owner(resource, reference.name, namespace, reference.uid)

    async def _current_owner(
        self, resource: APIResource[PartialObjectMetadata], name: str, namespace: str, uid: str
    ) -> ObjectMeta | None:
        """Return the current metadata of an owner, None if it is absent. An absent owner is requested only once."""
        identity = resource.group, resource.kind, namespace, name, uid
        if self._absent.has(identity):
            return None
        metadata = await self._find_metadata(resource, name, namespace, uid)
        if metadata is None:
            self._absent.keep(identity)
        return metadata

    async def _delete(self, node: Node, latest: ObjectMeta, policy: str) -> None:
        assert node.resource is not None
        preconditions = Preconditions(uid=node.uid, resource_version=latest.resource_version or None)
        options = DeleteOptions(preconditions=preconditions, propagation_policy=policy)
        try:
            async with self._limit.request(node.resource, node.namespace):
                await self.client.delete(node.resource, node.name, node.namespace, options)
        except StatusError as error:
            if is_not_found(error):
                self._forget(node, node.resource)
                return
            if not is_conflict(error) or not latest.resource_version:
                raise
            now = await self._latest(node)
            if now is None:
                return
            if now.owner_references != latest.owner_references:
                raise
            latest.resource_version = ""  # the object has changed, but not its owners
            await self._delete(node, latest, policy)

    async def _continue_foreground(self, node: Node) -> None:
        """Queue the blocking dependents of an object for deletion. Without any, remove its foreground finalizer."""
        for each in node.blocking.values():
            if not each.deleting_dependents:
                self.queue.add((_TO_DELETE, each.uid))
        if not node.blocking:
            await self._remove_finalizer(node, FOREGROUND)

    # Changes

    async def _orphan(self, node: Node) -> None:
        """Remove the references to an owner from its dependents, then its orphan finalizer."""
        for each in list(node.dependents.values()):
            latest = await self._latest(each) if each.observed else None
            if latest is not None:
                left = [one for one in latest.owner_references if one.uid != node.uid]
                if len(left) < len(latest.owner_references):
                    await self._put_owners(each, latest, left)
        await self._remove_finalizer(node, ORPHAN)

    async def _put_owners(self, node: Node, latest: ObjectMeta, owners: list[OwnerReference]) -> None:
        await self._patch(node, latest, {"ownerReferences": [to_plain(each) for each in owners] or None})

    async def _unblock_owners(self, node: Node, latest: ObjectMeta) -> None:
        owners = [{**to_plain(each), "blockOwnerDeletion": False} for each in latest.owner_references]
        await self._patch(node, latest, {"ownerReferences": owners})

    async def _remove_finalizer(self, node: Node, name: str) -> None:
        latest = await self._latest(node)
        if latest is not None and name in latest.finalizers:
            left = [each for each in latest.finalizers if each != name]
            await self._patch(node, latest, {"finalizers": left})

    async def _patch(self, node: Node, latest: ObjectMeta, metadata: dict[str, Any]) -> None:
        """Patch metadata. Raises StatusError Conflict if the object has changed since."""
        assert node.resource is not None
        patch = {"metadata": {"resourceVersion": latest.resource_version, "uid": latest.uid, **metadata}}
        with ignoring(is_not_found):
            async with self._limit.request(node.resource, node.namespace):
                await self.client.patch(node.resource, node.name, node.namespace, patch)


def _policy(metadata: ObjectMeta) -> str:
    if ORPHAN in metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in metadata.finalizers else "Background"
