"""Decisions about the nodes of a pool: the ones to add, remove, interrupt and fail, and the time of the next decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, islice
from random import Random
from typing import Final

from msgspec import Struct

from steersman.api.core.v1 import Node, NodeSpec, NodeStatus, NodeSystemInfo
from steersman.api.meta.v1 import ObjectMeta
from steersman.cluster.node_pools.pool import NODE_POOLS, NodePool, PoolSpec, seconds_of
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.nodes.behaviour import PREFIX, duration_or_none
from steersman.nodes.node_set import SIMULATED, ready_at_of
from steersman.nodes.simulated_node import GROUP, OS_IMAGE

FAILS_AFTER: Final = f"{PREFIX}fails-after"
"""Annotation of a pool's node: time from its creation until it fails."""
INTERRUPTED_AFTER: Final = f"{PREFIX}interrupted-after"
"""Annotation of a pool's node: time from its creation until it gets its notice."""
INTERRUPTED: Final = f"{PREFIX}interrupted"
"""Key of the taint that is the notice."""
ZONE: Final = "topology.kubernetes.io/zone"
_OF_AUTOSCALER: Final = "kwok:"
"""Beginning of the provider ID of a node that an autoscaler has made, perhaps as a copy of a pool's node with its label
and owner."""
_MOST_LIFE: Final = 10**9
"""Most seconds that a node lives, if a random number is extreme."""


class Plan(Struct, frozen=True):
    """Decisions about a pool's nodes."""

    wanted: int
    """Nodes that the pool has in the end, within its limits and those of the cluster."""
    staying: Sequence[Node]
    """Nodes that neither time nor failure ends now."""
    expired: Sequence[Node]
    """Nodes whose notice is over."""
    broken: Sequence[Node]
    """Nodes that have not been ready for so long that they are replaced."""
    to_interrupt: Sequence[Node]
    to_fail: Sequence[Node]
    next_at: float | None
    """Time in seconds since 1970 of the next decision that time alone causes."""

    @property
    def missing(self) -> int:
        """Number of nodes to add."""
        return max(self.wanted - len(self.staying), 0)

    @property
    def surplus(self) -> int:
        """Number of nodes to remove."""
        return max(len(self.staying) - self.wanted, 0)


def plan(spec: PoolSpec, nodes: Sequence[Node], room: int, now: float) -> Plan:
    """Return the decisions at the time `now` for a pool that may grow up to `room` nodes."""
    expired: list[Node] = []
    broken: list[Node] = []
    to_interrupt: list[Node] = []
    to_fail: list[Node] = []
    times_ahead: list[float] = []
    notice, repair = seconds_of(spec.interruptions.notice), seconds_of(spec.failures.repair_after)

    def is_due(at: float | None) -> bool:
        if at is not None and at > now:
            times_ahead.append(at)
        return at is not None and at <= now

    for each in nodes:
        if is_due(_gone_at(each, notice)):
            expired.append(each)
        elif repair and is_due(_repaired_at(each, repair)):
            broken.append(each)
        else:
            if _notice_of(each) is None and is_due(_after_creation(each, INTERRUPTED_AFTER)):
                to_interrupt.append(each)
            if is_due(_after_creation(each, FAILS_AFTER)):
                to_fail.append(each)
    leaving = {each.metadata.name for each in (*expired, *broken)}
    staying = [each for each in nodes if each.metadata.name not in leaving]
    wanted = min(spec.most, max(room, len(staying)))  # pools that share the room do not push each other's nodes out
    return Plan(wanted, staying, expired, broken, to_interrupt, to_fail, min(times_ahead, default=None))


def belongs(node: Node, pool: NodePool) -> bool:
    """Return True if a node is one of a pool: a simulated one with the label of its group, not made by an autoscaler."""
    return (
        node.metadata.labels.get(GROUP) == pool.metadata.name
        and (node.metadata.annotations.get(SIMULATED) == "true" or node.status.node_info.os_image == OS_IMAGE)
        and not node.spec.provider_id.startswith(_OF_AUTOSCALER)
    )


def new_nodes(
    pool: NodePool, spec: PoolSpec, nodes: Iterable[Node], names: Iterator[str], first: int
) -> Iterator[Node]:
    """Return new Node objects for `names`; `first` is the number of nodes that the pool has made before.

    Each is in the zone that has the fewest nodes then.
    """
    in_zones = Counter(each.metadata.labels.get(ZONE, "") for each in nodes)
    owner = new_controller_ref(NODE_POOLS, pool)
    template = spec.template
    for serial, name in enumerate(names, start=first):
        labels = {**template.metadata.labels, GROUP: pool.metadata.name}
        if spec.zones:
            labels[ZONE] = min(spec.zones, key=in_zones.__getitem__)
            in_zones[labels[ZONE]] += 1
        yield Node(
            metadata=ObjectMeta(
                name=name,
                labels=labels,
                annotations={**template.metadata.annotations, SIMULATED: "true", **_fate(pool, spec, serial)},
                owner_references=[owner],
            ),
            spec=NodeSpec(taints=list(template.spec.taints)),
            status=NodeStatus(
                capacity=template.capacity,
                allocatable=template.allocatable,
                node_info=NodeSystemInfo(architecture=template.status.node_info.architecture),
            ),
        )


def free_names(pool: str, taken: Collection[str], number: int) -> Iterator[str]:
    """Return the lowest names of the form POOL-N that are not taken."""
    return islice((name for name in (f"{pool}-{each}" for each in count()) if name not in taken), number)


def _fate(pool: NodePool, spec: PoolSpec, serial: int) -> dict[str, str]:
    """Return annotations with the times of a node's boot, failure and interruption.

    They depend on the seed, the name of the pool and the number of nodes that it has made before.
    """
    chance = Random(f"{spec.seed}/{pool.metadata.name}/{serial}")
    found = {f"{PREFIX}ready-after": spec.boot_time} if spec.boot_time else {}
    for annotation, mean in ((FAILS_AFTER, spec.failures.mean_time), (INTERRUPTED_AFTER, spec.interruptions.mean_time)):
        drawn = chance.expovariate(1.0)
        if (seconds := seconds_of(mean)) > 0:
            found[annotation] = f"{min(int(drawn * seconds) + 1, _MOST_LIFE)}s"
    return found


def _after_creation(node: Node, annotation: str) -> float | None:
    """Return the time in seconds since 1970 that an annotation says; None for none."""
    text, created = node.metadata.annotations.get(annotation, ""), node.metadata.creation_timestamp
    seconds = duration_or_none(text)
    return None if seconds is None or not created else times.unix(created) + seconds


def _notice_of(node: Node) -> float | None:
    """Return the time in seconds since 1970 of a node's notice; None without one."""
    for each in node.spec.taints:
        if each.key == INTERRUPTED:
            return times.unix(each.time_added or node.metadata.creation_timestamp or times.now())
    return None


def _gone_at(node: Node, notice: float) -> float | None:
    given = _notice_of(node)
    return None if given is None else given + notice


def _repaired_at(node: Node, after: float) -> float | None:
    """Return the time at which a node that is not ready is replaced; None for one that is ready."""
    ready = find_condition(node.status.conditions, "Ready")
    if ready is None or ready.status == "True" or not ready.last_transition_time:
        return None
    return max(times.unix(ready.last_transition_time), ready_at_of(node)) + after
