"""Decisions on a copy of a cluster's state, on which nodes and pods can be changed hypothetically."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from steersman.api.core import v1 as core
from steersman.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from steersman.client.api_resource import APIResource
from steersman.client.given_objects import GivenInformers
from steersman.client.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.scheduler.cycle import NoPlacement, Placement
from steersman.scheduler.model import Model
from steersman.scheduler.volumes.binding import VolumeBinder

RESOURCES: Final[Sequence[APIResource[Any]]] = (
    NAMESPACES,
    NODES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    PODS,
)
"""Resources that decisions depend on. Pods come last, as terms of pods depend on their namespaces."""


class Simulation:
    """The scheduler's model of a cluster, filled with given objects. Nothing that it decides is written.

    `objects` has the objects by resource; a resource that is missing counts as empty.
    """

    def __init__(self, objects: Mapping[APIResource[Any], Iterable[Any]]) -> None:
        self._informers = GivenInformers()
        self.model: Final = Model(self._informers)
        self._binder = VolumeBinder(self._informers.client, self.model.volumes)
        for resource in RESOURCES:
            for obj in objects.get(resource, ()):
                self.put(resource, obj)

    def put(self, resource: APIResource[Any], obj: Any) -> None:
        """Add or update an object."""
        cluster = self.model.cluster
        if resource == NAMESPACES:
            cluster.set_namespace(obj.metadata.name, obj.metadata.labels)
        elif resource == NODES:
            cluster.set_node(obj)
        elif resource == PODS:
            self._put_pod(obj)
        else:
            self._informers.put(resource, obj)

    def _put_pod(self, pod: core.Pod) -> None:
        if is_terminal(pod):
            return
        if pod.spec.node_name:
            self.model.cluster.set_pod(_with_uid(pod))
        elif pod.status.nominated_node_name:
            self.model.nominator.update(_with_uid(pod))

    async def decide(self, pod: core.Pod) -> Placement | NoPlacement:
        """Return the scheduler's decision on a pod. Raises SelectorError if the pod's demand cannot be read."""
        return await self.model.cycle.decide(_with_uid(pod))

    def place(self, pod: core.Pod, placed: Placement) -> core.Pod:
        """Put a pod on its node, with its volumes and claims, and return it as it is then."""
        name = placed.node.name
        bound = msgspec.structs.replace(_with_uid(pod), spec=msgspec.structs.replace(pod.spec, node_name=name))
        self.model.cluster.set_pod(bound)
        self.model.nominator.remove(bound.metadata.uid)
        if placed.volumes:
            self._binder.assume(placed.volumes, name)
        if placed.claims is not None:
            for claim in placed.claims.claims:
                allocation = placed.claims.allocations.get(claim.metadata.uid) or claim.status.allocation
                self._informers.put(RESOURCE_CLAIMS, _reserved(claim, allocation, bound))
        return bound

    def remove(self, pod: core.Pod) -> None:
        """Remove a pod from its node."""
        self.model.cluster.remove_pod(_with_uid(pod).metadata.uid)

    @contextmanager
    def hypothetical(self, *, nodes: Iterable[core.Node] = (), without: Iterable[core.Pod] = ()) -> Iterator[None]:
        """Change or add nodes and remove pods from their nodes, until the end of the block."""
        cluster = self.model.cluster
        before: list[tuple[str, core.Node | None]] = []
        removed = [pod for pod in without if cluster.remove_pod(_with_uid(pod).metadata.uid) is not None]
        try:
            for node in nodes:
                known = cluster.node(node.metadata.name)
                before.append((node.metadata.name, None if known is None else known.node))
                cluster.set_node(node)
            yield
        finally:
            for name, old in before:
                if old is None:
                    cluster.remove_node(name)
                else:
                    cluster.set_node(old)
            for pod in removed:
                cluster.set_pod(_with_uid(pod))


def _with_uid(pod: core.Pod) -> core.Pod:
    """Return a pod, with a UID made of its name if it has none, as manifests have none."""
    metadata = pod.metadata
    if metadata.uid:
        return pod
    uid = f"{metadata.namespace}/{metadata.name}"
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(metadata, uid=uid))


def _reserved(claim: ResourceClaim, allocation: Any, pod: core.Pod) -> ResourceClaim:
    user = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    status = msgspec.structs.replace(
        claim.status, allocation=allocation, reserved_for=[*claim.status.reserved_for, user]
    )
    return msgspec.structs.replace(claim, status=status)
