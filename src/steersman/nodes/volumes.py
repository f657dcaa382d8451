"""Volumes of claims of pods on simulated nodes: a pod waits until its claims are bound and attached to its node.

As a kubelet's volume manager does, it reports which volumes are in use, and expands file systems
(pkg/kubelet/volumemanager).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from steersman.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from steersman.api.storage.v1 import CSIDriver
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import Informers, Key, key_of
from steersman.client.resources import CSI_DRIVERS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from steersman.machinery.built_in.csi import is_attached_first, unique_name
from steersman.machinery.built_in.volumes import claim_name, is_fully_bound, storage_of
from steersman.machinery.values.conditions import is_condition_true, without_conditions

_TO_BE_RESIZED = "FileSystemResizePending"
_RESIZING = ("Resizing", _TO_BE_RESIZED)


def uses_claims(pod: Pod) -> bool:
    """Return True if a pod has volumes of claims, for which it may have to wait."""
    return any(each.persistent_volume_claim is not None or each.ephemeral is not None for each in pod.spec.volumes)


class NodeVolumes:
    """Volumes of claims of pods on nodes. `wake` is called with a pod that needs a sync."""

    def __init__(self, client: Client, informers: Informers, nodes: Mapping[str, object]) -> None:
        self._client = client
        self._nodes = nodes
        self._claims = informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = informers.for_resource(PERSISTENT_VOLUMES)
        self._drivers = informers.for_resource(CSI_DRIVERS)
        self._node_objects = informers.for_resource(NODES)
        self._users: dict[Key, set[Key]] = {}
        """Pods on nodes that use a claim, by claim."""
        self._claims_of: dict[Key, set[Key]] = {}
        """Claims that a pod uses, by pod."""
        self._in_use: dict[str, dict[str, set[Key]]] = {}
        """Pods that use a volume, by node and unique name of the volume."""
        self._written: dict[str, list[str]] = {}
        """Volumes in use as last written, by node."""
        self._write_locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, set[Key]] = {}
        """Pods that wait for a volume to be attached, by node."""

    def start(self, wake: Callable[[Key], None]) -> None:
        """Start to follow claims, volumes, nodes and drivers that pods wait for."""

        def claim_changed(_: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
            for pod in self._users.get(key_of(new), ()) if new is not None else ():
                wake(pod)

        def volume_changed(_: PersistentVolume | None, new: PersistentVolume | None) -> None:
            ref = None if new is None else new.spec.claim_ref
            for pod in self._users.get((ref.namespace, ref.name), ()) if ref is not None else ():
                wake(pod)

        def node_changed(old: Node | None, new: Node | None) -> None:
            if new is None and old is not None:
                self._written.pop(old.metadata.name, None)
            if new is not None and (old is None or old.status.volumes_attached != new.status.volumes_attached):
                for pod in self._waiting.get(new.metadata.name, ()):
                    wake(pod)

        def driver_changed(_: CSIDriver | None, new: CSIDriver | None) -> None:
            for pods in self._waiting.values() if new is not None else ():
                for pod in pods:
                    wake(pod)

        self._claims.on_change(claim_changed)
        self._volumes.on_change(volume_changed)
        self._node_objects.on_change(node_changed)
        self._drivers.on_change(driver_changed)

    async def set_up(self, pod: Pod, node: str) -> Sequence[str] | None:
        """Return the names of volumes whose file systems were expanded by this call; None if a volume cannot be used
        yet.

        Raises StatusError, Unreachable.
        """
        key = key_of(pod)
        claims = self._follow(pod)
        volumes = [self.volume_of(claim) for claim in claims]
        names = {
            unique_name(volume.spec.csi)
            for volume in volumes
            if volume is not None
            and volume.spec.csi is not None
            and is_attached_first(self._drivers.get("", volume.spec.csi.driver))
        }
        await self._use(key, node, names)
        known = self._node_objects.get("", node)
        attached = set() if known is None else {each.name for each in known.status.volumes_attached}
        if None in volumes or not names <= attached:
            self._waiting.setdefault(node, set()).add(key)
            return None
        self._waiting.get(node, set()).discard(key)
        return [each for each in [await self._resized(claim) for claim in claims] if each]

    async def release(self, pod: Key, node: str) -> None:
        """Release the volumes that a pod uses on a node. Raises StatusError, Unreachable."""
        waiting = self._waiting.get(node)
        if waiting is not None:
            waiting.discard(pod)
            if not waiting:
                del self._waiting[node]
        if self._written.get(node) or any(pod in users for users in self._in_use.get(node, {}).values()):
            await self._use(pod, node, set())  # if this fails, the caller calls `release` again
        for claim in self._claims_of.pop(pod, ()):
            users = self._users[claim]
            users.discard(pod)
            if not users:
                del self._users[claim]

    def has(self, pod: Key) -> bool:
        """Return True if a pod is known to use claims."""
        return pod in self._claims_of

    def _follow(self, pod: Pod) -> list[Key]:
        namespace, key = pod.metadata.namespace, key_of(pod)
        names = [claim_name(pod, volume) for volume in pod.spec.volumes]
        claims = [(namespace, name) for name in names if name]
        self._claims_of[key] = set(claims)
        for each in claims:
            self._users.setdefault(each, set()).add(key)
        return claims

    def volume_of(self, key: Key) -> PersistentVolume | None:
        """Return the volume of a claim, if both are bound to each other; otherwise None."""
        claim = self._claims.get(*key)
        if claim is None or claim.status.phase != "Bound" or not is_fully_bound(claim):
            return None
        volume = self._volumes.get("", claim.spec.volume_name)
        ref = None if volume is None else volume.spec.claim_ref
        return volume if ref is not None and ref.uid == claim.metadata.uid else None

    async def _use(self, pod: Key, node: str, names: set[str]) -> None:
        """Set the volumes that a pod uses on a node, and write them into the node's status."""
        in_use = self._in_use.setdefault(node, {})
        for name in names:
            in_use.setdefault(name, set()).add(pod)
        for name in [name for name, users in in_use.items() if name not in names and pod in users]:
            in_use[name].discard(pod)
            if not in_use[name]:
                del in_use[name]
        if not in_use:
            del self._in_use[node]
        await self._write_volumes_in_use(node)

    async def _write_volumes_in_use(self, node: str) -> None:
        """Write the volumes in use into the node's status, unless they were written last.

        The cached Node object may be older than the last write, so it is used only before the first one.
        """
        async with self._write_locks.setdefault(node, asyncio.Lock()):
            known = self._node_objects.get("", node)
            volumes_in_use = sorted(self._in_use.get(node, ()))
            if known is None or self._written.get(node, sorted(known.status.volumes_in_use)) == volumes_in_use:
                return
            patch = {"status": {"volumesInUse": volumes_in_use or None}}
            with ignoring(is_not_found):
                await self._client.patch_without_result(NODES, node, "", patch, subresource="status")
                self._written[node] = volumes_in_use

    async def _resized(self, key: Key) -> str:
        """Expand the file system of a claim's volume, if the node has to, and return the volume's name;
        otherwise "".
        """
        claim = self._claims.get(*key)
        volume = None if claim is None else self._volumes.get("", claim.spec.volume_name)
        if claim is None or volume is None:
            return ""
        if not is_condition_true(claim.status.conditions, _TO_BE_RESIZED):
            return ""
        capacity = {**claim.status.capacity, "storage": storage_of(volume.spec.capacity)}
        conditions = without_conditions(claim.status.conditions, *_RESIZING)
        status = msgspec.structs.replace(
            claim.status, capacity=capacity, conditions=conditions, allocated_resource_statuses={}
        )
        await self._client.update_status(PERSISTENT_VOLUME_CLAIMS, msgspec.structs.replace(claim, status=status))
        return volume.metadata.name
