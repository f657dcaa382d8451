"""Demands of pods, with what the cluster's other objects add to them: Services, owners, terms of other pods."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from steersman.api.apps import v1 as apps
from steersman.api.core import v1 as core
from steersman.api.meta.v1 import OwnerReference
from steersman.client.informer import Informers
from steersman.client.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS
from steersman.machinery.selectors.labels import (
    NOTHING,
    Selector,
    SelectorError,
    from_label_selector,
    selector_from_set,
)
from steersman.scheduler.demand.demand import Demand, DemandContext, demand_key, read_demand
from steersman.scheduler.demand.spread import selector_of_owners
from steersman.scheduler.demand.weight import MOST_LABELS, is_heavy
from steersman.scheduler.state.cluster import ClusterState
from steersman.work.bounded_cache import BoundedCache
from steersman.work.offloading import offload_if

_MOST_KNOWN: Final = 4096


class Demands:
    """Reads the demands of pods, each distinct demand once."""

    def __init__(
        self, informers: Informers, cluster: ClusterState, device_resources: Callable[[core.Pod], frozenset[str]]
    ) -> None:
        """`device_resources` returns the extended resources of a pod that devices of a DeviceClass provide."""
        self._cluster = cluster
        self._device_resources = device_resources
        self._services = informers.for_resource(SERVICES)
        self._controllers = informers.for_resource(REPLICATION_CONTROLLERS)
        self._replica_sets = informers.for_resource(REPLICA_SETS)
        self._stateful_sets = informers.for_resource(STATEFUL_SETS)
        self._services.on_change(self._changed)
        self._controllers.on_change(self._changed)
        self._replica_sets.on_change(self._set_changed)
        self._stateful_sets.on_change(self._set_changed)
        self._sibling_selectors: BoundedCache[Hashable, Selector] = BoundedCache(_MOST_KNOWN)
        self._demands: BoundedCache[bytes, Demand] = BoundedCache(_MOST_KNOWN)

    async def synced(self) -> None:
        """Wait until all informers that demands depend on have synced."""
        await self._services.wait_until_synced()
        await self._controllers.wait_until_synced()
        await self._replica_sets.wait_until_synced()
        await self._stateful_sets.wait_until_synced()

    def _changed(self, old: object, new: object) -> None:
        self._sibling_selectors.forget()

    def _set_changed(
        self, old: apps.ReplicaSet | apps.StatefulSet | None, new: apps.ReplicaSet | apps.StatefulSet | None
    ) -> None:
        """Forget selectors when a set comes or goes. Selectors of sets are immutable, so updates do not matter."""
        if old is None or new is None:
            self._sibling_selectors.forget()

    async def for_pod(self, pod: core.Pod) -> Demand:
        """Return the demand of a pod. Raises SelectorError if a selector of the pod is invalid.

        The demand of a heavy pod is read in a worker thread and not cached.
        """
        context = self.context(pod)
        if is_heavy(pod):
            return await offload_if(True, read_demand, pod, context, pod.metadata.uid.encode())
        key = demand_key(pod, context)
        found = self._demands[key]
        if found is None:
            found = read_demand(pod, context, key)
            self._demands.keep(key, found)
        return found

    def context(self, pod: core.Pod) -> DemandContext:
        """Return what other objects of the cluster add to the demand of a pod."""
        anti_affinity_terms, preference_terms = self._cluster.terms_selecting(pod)
        namespace_labels = self._cluster.labels_of(pod.metadata.namespace)
        return DemandContext(
            self._selector_of(pod),
            anti_affinity_terms,
            preference_terms,
            namespace_labels,
            self._device_resources(pod),
        )

    def _selector_of(self, pod: core.Pod) -> Selector:
        if pod.spec.topology_spread_constraints:
            return NOTHING
        metadata = pod.metadata
        owner = next((each for each in metadata.owner_references if each.controller), None)
        key = metadata.namespace, frozenset(metadata.labels.items()), None if owner is None else owner.uid
        found = self._sibling_selectors[key]
        if found is None:
            services = self._services.list(metadata.namespace)
            of_owner = None if owner is None else self._owner_selector(metadata.namespace, owner)
            found = selector_of_owners(services, of_owner, pod)
            if len(metadata.labels) <= MOST_LABELS:
                self._sibling_selectors.keep(key, found)
        return found

    def _owner_selector(self, namespace: str, owner: OwnerReference) -> Selector | None:
        kind = owner.api_version, owner.kind
        if kind == ("v1", "ReplicationController"):
            controller = self._controllers.get(namespace, owner.name)
            return None if controller is None else selector_from_set(controller.spec.selector)
        found: apps.ReplicaSet | apps.StatefulSet | None = None
        if kind == ("apps/v1", "ReplicaSet"):
            found = self._replica_sets.get(namespace, owner.name)
        elif kind == ("apps/v1", "StatefulSet"):
            found = self._stateful_sets.get(namespace, owner.name)
        if found is None:
            return None
        try:
            return from_label_selector(found.spec.selector)
        except SelectorError:
            return None
