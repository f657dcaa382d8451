"""Checks of nodes for the volumes of one pod: restrictions, limits of drivers, binding, zones, in upstream's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from steersman.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume
from steersman.machinery.built_in.classes import storage_class_of
from steersman.machinery.built_in.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    allows,
    claim_name,
    is_fully_bound,
    is_made_for,
    storage_of,
)
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.values.quantity import parse
from steersman.scheduler.fit.status import (
    NODE_VOLUME_LIMITS,
    VOLUME_BINDING,
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
    Rejection,
)
from steersman.scheduler.state.node_info import NodeInfo
from steersman.scheduler.volumes.matching import allows_provisioning, matching_volume
from steersman.scheduler.volumes.store import VolumeStore

_ONLY_ONE: Final = "ReadWriteOncePod"
_ZONE_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}

DISK_CONFLICT: Final = Rejection(VOLUME_RESTRICTIONS, ("node(s) had no available disk",), resolvable=True)
_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
IN_USE: Final = Rejection(VOLUME_RESTRICTIONS, (_IN_USE,), resolvable=True)
TOO_MANY: Final = Rejection(NODE_VOLUME_LIMITS, ("node(s) exceed max volume count",), resolvable=True)
OTHER_ZONE: Final = Rejection(VOLUME_ZONE, ("node(s) had no available volume zone",))
NOT_ALLOWED: Final = "node(s) didn't match PersistentVolume's node affinity"
NOT_FOUND: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
_NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND: Final = Rejection(VOLUME_BINDING, ("pod has unbound immediate PersistentVolumeClaims",))


UsersOf = Callable[[str, str], Iterable[tuple[str, str]]]
"""Returns the pods on nodes that use a claim (namespace and name): their UIDs and the names of their nodes."""


class Plan(Struct):
    """Writes that are due once a node is chosen: volumes bound to claims, and claims to be provisioned."""

    bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = field(default_factory=list)
    provisions: list[PersistentVolumeClaim] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.bindings or self.provisions)


def has_relevant_volumes(pod: Pod) -> bool:
    """Return True if volumes of a pod restrict the nodes it can run on."""
    return any(claim_name(pod, volume) or _is_exclusive(volume) for volume in pod.spec.volumes)


def _is_exclusive(volume: Volume) -> bool:
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi))


class PodVolumes:
    """Volumes of a pod. `before` is a rejection that holds for every node, or None."""

    def __init__(self, pod: Pod, store: VolumeStore, users: UsersOf) -> None:
        self.pod = pod
        self._store = store
        self._users = users
        self._bound: list[PersistentVolumeClaim] = []
        self._delayed: list[PersistentVolumeClaim] = []
        self._only_one: list[str] = []
        self._zones: list[tuple[str, frozenset[str]]] = []
        self.before = self._read()

    @property
    def all_bound(self) -> bool:
        """True if no claim has to be bound."""
        return not self._delayed

    def _read(self) -> Rejection | None:
        """Read and sort the claims. Return the pod's rejection, or None (PreFilter of the four plugins)."""
        namespace = self.pod.metadata.namespace
        for volume in self.pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                claim = self._store.claim(namespace, name)
                if claim is None:
                    return Rejection(VOLUME_RESTRICTIONS, (f'persistentvolumeclaim "{name}" not found',))
                if _ONLY_ONE in claim.spec.access_modes:
                    self._only_one.append(name)
        claims = []
        for volume in self.pod.spec.volumes:
            found = self._claim(volume)
            if isinstance(found, Rejection):
                return found
            if found is not None:
                claims.append(found)
        return self._classify(claims) or self._read_zones(claims)

    def _claim(self, volume: Volume) -> PersistentVolumeClaim | Rejection | None:
        name = claim_name(self.pod, volume)
        if not name:
            return None
        claim = self._store.claim(self.pod.metadata.namespace, name)
        if claim is None:
            waiting = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return Rejection(VOLUME_BINDING, (waiting,))
        if claim.status.phase == "Lost":
            lost = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
            return Rejection(VOLUME_BINDING, (lost,))
        if claim.metadata.deletion_timestamp:
            return Rejection(VOLUME_BINDING, (f'persistentvolumeclaim "{name}" is being deleted',))
        if volume.ephemeral is not None and not is_made_for(claim, self.pod):
            whose = f"{self.pod.metadata.namespace}/{name} was not created for pod {self.pod.metadata.namespace}/"
            return Rejection(VOLUME_BINDING, (f"PVC {whose}{self.pod.metadata.name} (pod is not owner)",))
        return claim

    def _classify(self, claims: Iterable[PersistentVolumeClaim]) -> Rejection | None:
        immediate = False
        for claim in claims:
            if is_fully_bound(claim):
                self._bound.append(claim)
            elif not claim.spec.volume_name and self._is_delayed(claim):
                self._delayed.append(claim)
            else:
                immediate = True
        return UNBOUND if immediate else None

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._store.classes.get("", storage_class_of(claim))
        return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _read_zones(self, claims: Iterable[PersistentVolumeClaim]) -> Rejection | None:
        for claim in claims:
            name = claim.spec.volume_name
            if not name:
                continue
            volume = self._store.volume(name)
            if volume is None:
                return Rejection(VOLUME_ZONE, (f'persistentvolume "{name}" not found',))
            for key in _ZONE_LABELS:
                value = volume.metadata.labels.get(key)
                if value is not None:
                    self._zones.append((key, frozenset(value.split("__"))))
        return None

    # Nodes

    def rejection(self, info: NodeInfo) -> Rejection | None:
        """Return the rejection of a node, which may hold other pods hypothetically; None if it fits."""
        return next(self.rejections(info), None)

    def rejections(self, info: NodeInfo) -> Iterator[Rejection]:
        """Yield the rejections of a node by all plugins for volumes, in upstream's order."""
        node = info.node
        if node is None:
            return
        if (found := self._restricted(info)) is not None:
            yield found
        if (found := self._too_many(info, node)) is not None:
            yield found
        if (found := self._unbindable(node)) is not None:
            yield found
        if (found := self._of_other_zone(node)) is not None:
            yield found

    def _restricted(self, info: NodeInfo) -> Rejection | None:
        exclusive = [volume for volume in self.pod.spec.volumes if _is_exclusive(volume)]
        if exclusive and any(
            _conflict(mine, other)
            for mine in exclusive
            for each in info.pods.values()
            for other in each.pod.spec.volumes
        ):
            return DISK_CONFLICT
        for name in self._only_one:
            for uid, node_name in self._users(self.pod.metadata.namespace, name):
                if node_name != info.name or uid in info.pods:
                    return IN_USE
        return None

    def _too_many(self, info: NodeInfo, node: Node) -> Rejection | None:
        csi_node = self._store.csi_nodes.get("", node.metadata.name)
        limits = {
            driver.name: driver.allocatable.count
            for driver in (csi_node.spec.drivers or () if csi_node is not None else ())
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if not limits:
            return None
        new = set(self._handles(self.pod))
        if not new:
            return None
        attached = {handle for each in info.pods.values() for handle in self._handles(each.pod)}
        attached.update(self._store.attached(node.metadata.name))
        present = Counter(driver for driver, _ in attached)
        more = Counter(driver for driver, _ in new - attached)
        if any(driver in limits and present[driver] + count > limits[driver] for driver, count in more.items()):
            return TOO_MANY
        return None

    def _handles(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """Yield driver and handle of each volume of a pod; for a claim without a volume, its provisioner and name."""
        for each in pod.spec.volumes:
            name = claim_name(pod, each)
            claim = self._store.claim(pod.metadata.namespace, name) if name else None
            if claim is None:
                continue
            volume = self._store.volume(claim.spec.volume_name) if claim.spec.volume_name else None
            if volume is not None:
                if volume.spec.csi is not None:
                    yield volume.spec.csi.driver, volume.spec.csi.volume_handle
                continue
            storage_class = self._store.classes.get("", storage_class_of(claim))
            if storage_class is not None:
                yield storage_class.provisioner, f"{pod.metadata.namespace}/{name}"

    def _unbindable(self, node: Node) -> Rejection | None:
        _, reasons = self._find_volumes(node)
        return Rejection(VOLUME_BINDING, reasons) if reasons else None

    def plan(self, node: Node) -> Plan:
        """Return what has to be written for a node on which the volumes can be bound."""
        return self._find_volumes(node)[0]

    def _find_volumes(self, node: Node) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan for a node, and the reasons why it cannot be done (FindPodVolumes)."""
        plan = Plan()
        reasons: list[str] = []
        for claim in self._bound:
            volume = self._store.volume(claim.spec.volume_name)
            if volume is None:
                reasons.append(_NO_VOLUME)
                break
            if not allows(volume, node.metadata.name, node.metadata.labels):
                reasons.append(NOT_ALLOWED)
                break
        provisions: list[PersistentVolumeClaim] = []
        search: list[PersistentVolumeClaim] = []
        for claim in self._delayed:
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None and selected != node.metadata.name:
                return plan, (*reasons, NOT_FOUND)
            (search if selected is None else provisions).append(claim)
        taken: set[str] = set()
        for claim in sorted(search, key=_size):
            found = matching_volume(claim, self._store.volumes_of_class(storage_class_of(claim)), node, taken)
            if found is None:
                provisions.append(claim)
            else:
                taken.add(found.metadata.name)
                plan.bindings.append((found, claim))
        for claim in provisions:
            reason = self._provisioning_problem(claim, node)
            if reason:
                reasons.append(reason)
                break
            plan.provisions.append(claim)
        return plan, tuple(reasons)

    def _provisioning_problem(self, claim: PersistentVolumeClaim, node: Node) -> str:
        storage_class = self._store.classes.get("", storage_class_of(claim))
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return NOT_FOUND
        if not allows_provisioning(storage_class, node):
            return NOT_FOUND
        name, provisioner = storage_class.metadata.name, storage_class.provisioner
        return "" if self._has_capacity(claim, name, provisioner, node) else NO_SPACE

    def _has_capacity(self, claim: PersistentVolumeClaim, class_name: str, provisioner: str, node: Node) -> bool:
        driver = self._store.drivers.get("", provisioner)
        wanted = claim.spec.resources.requests.get("storage")
        if wanted is None or driver is None or not driver.spec.storage_capacity:
            return True
        size = parse(wanted).as_int()
        for each in self._store.capacities.list():
            limit = each.maximum_volume_size or each.capacity
            if each.storage_class_name != class_name or limit is None or parse(limit).as_int() < size:
                continue
            if each.node_topology is None:
                continue
            try:
                if from_label_selector(each.node_topology).matches(node.metadata.labels):
                    return True
            except SelectorError:
                continue
        return False

    def _of_other_zone(self, node: Node) -> Rejection | None:
        labels = node.metadata.labels
        if not self._zones or not any(key in labels for key in _ZONE_LABELS):
            return None
        for key, values in self._zones:
            if labels.get(key, labels.get(_ZONE_LABELS[key])) not in values:
                return OTHER_ZONE
        return None


def _size(claim: PersistentVolumeClaim) -> int:
    return parse(storage_of(claim.spec.resources.requests)).nanos()


def _conflict(mine: Volume, other: Volume) -> bool:
    """Return True if two pods with these volumes cannot be on one node."""
    if mine.gce_persistent_disk is not None and other.gce_persistent_disk is not None:
        disk, theirs = mine.gce_persistent_disk, other.gce_persistent_disk
        return disk.pd_name == theirs.pd_name and not (disk.read_only and theirs.read_only)
    if mine.aws_elastic_block_store is not None and other.aws_elastic_block_store is not None:
        return mine.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if mine.iscsi is not None and other.iscsi is not None:
        return mine.iscsi.iqn == other.iscsi.iqn and not (mine.iscsi.read_only and other.iscsi.read_only)
    if mine.rbd is not None and other.rbd is not None:
        rbd, theirs_rbd = mine.rbd, other.rbd
        same = (rbd.pool, rbd.image) == (theirs_rbd.pool, theirs_rbd.image)
        shared = set(rbd.monitors or ()) & set(theirs_rbd.monitors or ())
        return bool(shared) and same and not (rbd.read_only and theirs_rbd.read_only)
    return False
