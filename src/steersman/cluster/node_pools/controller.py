"""Controller of NodePools: adds and removes their nodes, interrupts and fails some, and counts cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Final

import msgspec

from steersman.api.core.v1 import Node, Pod, Taint
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.client.client import MERGE_PATCH
from steersman.client.errors import ignoring, is_already_exists, is_not_found
from steersman.client.events import reference
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import new_or_old
from steersman.client.resources import NODES, PODS
from steersman.cluster.configuration import MOST_NODES
from steersman.cluster.late_controller import LateController
from steersman.cluster.node_groups import surplus
from steersman.cluster.node_pools.accounts import Counts, cost_age, differs, is_ready, status_after, with_conditions
from steersman.cluster.node_pools.plan import (
    FAILS_AFTER,
    INTERRUPTED,
    Plan,
    belongs,
    free_names,
    new_nodes,
    plan,
)
from steersman.cluster.node_pools.pool import (
    NODE_POOLS,
    InvalidPool,
    NodePool,
    PoolSpec,
    PoolStatus,
    millionths_of,
    seconds_of,
    spec_of,
    status_of,
)
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.workloads.controller_ref import (
    Claims,
    add_controller_index,
    controlled_by,
    controller_of,
    owners_of_change,
)
from steersman.controllers.workloads.expectations import Expectations
from steersman.controllers.workloads.pod_control import run_all, slow_start
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.simulated_node import GROUP
from steersman.work.offloading import offload_if
from steersman.work.upkeep import upkeep
from steersman.work.work_queue import TryLater

_BURST: Final = 500
"""Most nodes that one reconciliation creates or deletes."""
_MANY: Final = 100
"""Nodes of a pool from which on its decisions are made in a worker thread."""
_DELAY_PER_NODE: Final = 50e-6
"""Seconds for each node of a pool that a reconciliation is delayed after a change of a node, as more may change."""
_MOST_DELAY: Final = 0.5
_COST_EVERY: Final = 60.0
"""Seconds between two updates of a pool's cost while nothing else changes."""
_LONGEST_WAIT: Final = 86400.0
"""Seconds between two reconciliations at most, as a timer of the event loop cannot be set for any length of time."""
_MOST_MESSAGE: Final = 1024
_NODES: Final = "nodes"
_COST: Final = "cost"
_BY_GROUP: Final = "simulated-group"
"""Index of nodes without a controller by their group."""

Key = tuple[str, str]
"""Name of a pool, and the part of it that is due: its nodes, or a new count of its cost."""


class NodePoolController(LateController[Key]):
    """Keeps the nodes of each pool."""

    name = "nodepool-controller"
    component = "nodepool-controller"
    retry_delay = 0.05
    longest_retry_delay = 60.0

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._since = times.unix_now()
        """Time from which cost accrues: while the cluster is stopped, its nodes cost nothing."""
        self._expected: Expectations[str] = Expectations()
        self._made: dict[str, int] = {}
        """Nodes that each pool has made, as its informer may not show the last status yet."""
        self._pools = self.follow(NODE_POOLS)
        self._nodes = self.informers.for_resource(NODES)
        self._pods = self.informers.for_resource(PODS)
        add_controller_index(self._nodes)
        self._nodes.add_index(_BY_GROUP, _group_without_controller)
        self._pods.add_index(BY_NODE, by_node)
        self._pools.on_change(self._pool_changed)
        self._nodes.on_change(self._node_changed)

    def _pool_changed(self, old: NodePool | None, new: NodePool | None) -> None:
        pool = new_or_old(old, new)
        if new is None:
            self._expected.forget(pool.metadata.name)
            self._made.pop(pool.metadata.name, None)
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            self.queue.add((pool.metadata.name, _NODES))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        former, owner = owners_of_change(self._pools, old, new)
        if owner is not None and old is None:
            self._expected.observe_creation(owner.metadata.name)
        if new is None or new.metadata.deletion_timestamp:
            for each in (former, owner):
                if each is not None:
                    self._expected.observe_deletion(each.metadata.name, new_or_old(old, new).metadata.uid)
        names = {each.metadata.name for each in (former, owner) if each is not None}
        if new is not None and controller_of(new) is None and (group := new.metadata.labels.get(GROUP)):
            names.add(group)
        if not names or (old is not None and new is not None and _concerns_pool(old) == _concerns_pool(new)):
            return
        delay = min(_DELAY_PER_NODE * len(self._nodes), _MOST_DELAY)
        for name in names:
            if self._pools.get("", name) is not None:
                self.queue.add_after((name, _NODES), delay)

    async def sync(self, key: Key) -> None:
        name, part = key
        if part == _COST:
            self.queue.add((name, _NODES))
            return
        pool = self._pools.get("", name)
        if pool is None or pool.metadata.deletion_timestamp:
            return
        try:
            spec = spec_of(pool)
        except InvalidPool as error:
            await self._write_invalid(pool, error)
        else:
            await self._reconcile(key, pool, spec)

    async def _reconcile(self, key: Key, pool: NodePool, spec: PoolSpec) -> None:
        """Do what is due for a pool, and write its status. The changes of nodes that this causes queue the pool again.

        Raises StatusError, Unreachable, TryLater to be retried.
        """
        name, nodes, before = pool.metadata.name, await self._claimed(pool), status_of(pool)
        room = MOST_NODES - (len(self._nodes) - len(nodes))
        now = times.unix_now()
        found = await offload_if(len(nodes) > _MANY, plan, spec, nodes, room, now)
        made, error = max(before.nodes_made, self._made.get(name, 0), len(nodes)), None
        if self._expected.are_satisfied(name):
            added, error = await self._act(pool, spec, nodes, found, made)
            made += added
            nodes = _staying(controlled_by(self._nodes, pool.metadata.uid))
        self._made[name] = made
        counts = Counts(found.wanted, made, self._since)
        status = await offload_if(len(nodes) > _MANY, status_after, before, pool, spec, nodes, counts)
        if isinstance(error, StatusError):
            conditions = with_conditions(before, pool, "False", "NodesNotChanged", str(error)[:_MOST_MESSAGE])
            status = msgspec.structs.replace(status, conditions=conditions)
        await self._write_status(pool, before, status)
        if error is not None:
            raise error
        if found.next_at is not None:
            self.queue.add_after(key, min(max(found.next_at - now, 0.001), _LONGEST_WAIT))
        if nodes and millionths_of(status.price_per_hour):
            with upkeep():
                self.queue.add_after((name, _COST), _COST_EVERY)

    async def _claimed(self, pool: NodePool) -> Sequence[Node]:
        """Return the nodes of a pool, after adopting those of its group that have no controller."""
        name, uid = pool.metadata.name, pool.metadata.uid
        nodes = (*controlled_by(self._nodes, uid), *self._nodes.indexed(_BY_GROUP, name))
        claims = Claims(self.client, NODE_POOLS, pool, NODES, lambda node: belongs(node, pool))
        return _staying(await claims.claim(nodes))

    def _pods_on(self, node: Node) -> Sequence[Pod]:
        return self._pods.indexed(BY_NODE, node.metadata.name)

    async def _act(
        self, pool: NodePool, spec: PoolSpec, nodes: Sequence[Node], found: Plan, made: int
    ) -> tuple[int, Exception | None]:
        """Carry out a plan. Return the number of nodes that were made, and the first error."""
        acts = [
            *(partial(self._interrupt, pool, spec, each) for each in found.to_interrupt),
            *(partial(self._fail, pool, each) for each in found.to_fail),
        ]
        self._expected.expect(pool.metadata.name)
        errors = await run_all(acts)
        errors += await self._remove(pool, "NodesInterrupted", "interrupted", found.expired)
        errors += await self._remove(pool, "NodesRepaired", "not ready, are replaced", found.broken)
        if found.surplus:
            pods = list(chain.from_iterable(map(self._pods_on, found.staying)))
            first = await offload_if(len(nodes) > _MANY, surplus, found.staying, pods, found.surplus)
            errors += await self._remove(pool, "NodesRemoved", "removed", first)
        if not found.missing:
            return 0, next(iter(errors), None)
        added, error = await self._add(pool, spec, nodes, min(found.missing, _BURST), made)
        return added, next(iter(errors), error)

    async def _add(
        self, pool: NodePool, spec: PoolSpec, nodes: Sequence[Node], number: int, made: int
    ) -> tuple[int, Exception | None]:
        name = pool.metadata.name
        taken = {each.metadata.name for each in self._nodes} | set(self._names_with_pods(name))
        new = list(new_nodes(pool, spec, nodes, free_names(name, taken, number), made))
        self._expected.add(name, creations=number)

        async def create(index: int) -> None:
            try:
                await self.client.create(NODES, new[index])
            except StatusError as error:
                if is_already_exists(error):  # the informer does not show it yet
                    raise TryLater(str(error)) from None
                raise

        succeeded, error = await slow_start(number, create)
        self._expected.observe_creation(name, number - succeeded)
        if succeeded:
            self._record(pool, "NodesAdded", f"{_nodes(succeeded)} added")
        if isinstance(error, StatusError):
            self._record(pool, "FailedCreate", str(error), "Warning")
        return succeeded, error

    def _names_with_pods(self, pool: str) -> Iterable[str]:
        """Return the names that a new node cannot have, as pods of a lost node are still bound to them."""
        begin = f"{pool}-"
        for each in self._pods:
            if each.spec.node_name.startswith(begin):
                yield each.spec.node_name

    async def _remove(self, pool: NodePool, reason: str, what: str, nodes: Sequence[Node]) -> list[Exception]:
        """Delete nodes, and return the errors."""
        nodes = nodes[:_BURST]
        if not nodes:
            return []
        name = pool.metadata.name
        self._expected.add(name, deletions=[each.metadata.uid for each in nodes])
        errors = await run_all([partial(self._delete, name, each) for each in nodes])
        if len(errors) < len(nodes):
            self._record(pool, reason, f"{_nodes(len(nodes) - len(errors))} {what}")
        return errors

    async def _delete(self, pool: str, node: Node) -> None:
        metadata = node.metadata
        options = DeleteOptions(preconditions=Preconditions(uid=metadata.uid))
        try:
            await self.client.delete(NODES, metadata.name, "", options)
        except StatusError as error:
            self._expected.observe_deletion(pool, metadata.uid)
            if not is_not_found(error):
                raise
        except BaseException:
            self._expected.observe_deletion(pool, metadata.uid)
            raise

    async def _interrupt(self, pool: NodePool, spec: PoolSpec, node: Node) -> None:
        """Give a node its notice: a taint, and events."""
        notice = spec.interruptions.notice
        taint = Taint(key=INTERRUPTED, effect="NoSchedule", time_added=times.now())
        patch = {
            "metadata": {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version},
            "spec": {"taints": [to_plain(each) for each in (*node.spec.taints, taint)]},
        }
        with ignoring(is_not_found):
            await self.client.patch_without_result(NODES, node.metadata.name, "", patch, media=MERGE_PATCH)
        text = f"node {node.metadata.name} will be interrupted in {seconds_of(notice):.0f} s"
        for resource, obj in ((NODES, node), (NODE_POOLS, pool)):
            self.recorder.event(reference(resource, obj), "Warning", "SpotInterruption", text)

    async def _fail(self, pool: NodePool, node: Node) -> None:
        """Let a node no longer answer."""
        patch = {
            "metadata": {"uid": node.metadata.uid, "annotations": {f"{PREFIX}unreachable": "true", FAILS_AFTER: None}}
        }
        with ignoring(is_not_found):
            await self.client.patch_without_result(NODES, node.metadata.name, "", patch, media=MERGE_PATCH)
        self._record(pool, "NodeFailed", f"node {node.metadata.name} does not answer any more", "Warning")

    async def _write_invalid(self, pool: NodePool, error: InvalidPool) -> None:
        before = status_of(pool)
        conditions = with_conditions(before, pool, "False", "InvalidSpec", str(error)[:_MOST_MESSAGE])
        status = msgspec.structs.replace(before, observed_generation=pool.metadata.generation, conditions=conditions)
        await self._write_status(pool, before, status)

    async def _write_status(self, pool: NodePool, before: PoolStatus, status: PoolStatus) -> None:
        if differs(before, status) or _costs_more(before, status):
            plain = to_plain(status)
            if not status.cost_time:
                del plain["costTime"]  # no time is no date
            await self.client.update_status(NODE_POOLS, msgspec.structs.replace(pool, status=plain))

    def _record(self, pool: NodePool, reason: str, message: str, type_: str = "Normal") -> None:
        self.recorder.event(reference(NODE_POOLS, pool), type_, reason, message[:_MOST_MESSAGE])


def _staying(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that are not being deleted."""
    return [each for each in nodes if each.metadata.deletion_timestamp is None]


def _group_without_controller(node: Node) -> Iterable[str]:
    group = node.metadata.labels.get(GROUP)
    return (group,) if group and controller_of(node) is None else ()


def _concerns_pool(node: Node) -> tuple[object, ...]:
    """Return the properties of a node that matter to its pool."""
    metadata = node.metadata
    return (
        metadata.uid,
        metadata.deletion_timestamp,
        metadata.labels,
        metadata.annotations,
        metadata.owner_references,
        node.spec.taints,
        node.status.capacity,
        is_ready(node),
    )


def _costs_more(before: PoolStatus, after: PoolStatus) -> bool:
    """Return True if the cost has grown since it was written, as it is to be seen while nothing else changes."""
    return after.cost != before.cost and cost_age(before) >= _COST_EVERY / 2


def _nodes(number: int) -> str:
    return f"{number} node{'s' * (number != 1)}"
