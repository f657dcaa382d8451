"""Reconciliation of DaemonSets (pkg/controller/daemon)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from steersman.api.apps.v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from steersman.api.core.v1 import Node, Pod
from steersman.api.meta.v1 import LabelSelector
from steersman.client.errors import ignoring, is_namespace_terminating, is_not_found
from steersman.client.events import reference
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from steersman.client.transport import Unreachable
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.daemon_set.failed_pods import FailedPodBackoff
from steersman.controllers.daemon_set.history import History
from steersman.controllers.daemon_set.nodes import NodeMatcher, bound_to, is_updated, target_node, template_for
from steersman.controllers.daemon_set.rolling import Change, next_change, surge_of
from steersman.controllers.workloads.controller_ref import (
    Claims,
    add_controller_index,
    controlled_by,
    controller_of,
    orphans,
    owners_of_change,
    possible_owners,
    resolve,
)
from steersman.controllers.workloads.expectations import Expectations
from steersman.controllers.workloads.own_writes import OwnWrites
from steersman.controllers.workloads.pod_control import PodControl, pod_from_template, run_all, slow_start
from steersman.controllers.workloads.revisions import REVISION_HASH
from steersman.controllers.workloads.selectors import compile_selector, may_own
from steersman.machinery.built_in.pod_state import is_available, is_ready, is_terminal
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors.labels import Selector
from steersman.machinery.values import times
from steersman.work.work_queue import TryLater
from steersman.work.yielding import TimeSlice

_BURST: Final = 250
"""Most pods that one reconciliation creates or deletes."""
_DELAY_PER_NODE: Final = 20e-6
_MAX_DELAY: Final = 0.1
"""Seconds for each node, and at most, that a reconciliation is delayed to collect changes: it visits all nodes."""

Verdicts = Mapping[str, tuple[bool, bool]]
"""For each node: True if a pod should run there, and True if an existing pod may stay."""


class DaemonSetController(Controller[Key]):
    """Reconciles DaemonSets. A key is the namespace and name of a DaemonSet."""

    name = "daemonset-controller"
    account = "daemon-set-controller"
    component = "daemonset-controller"
    workers = 2

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._control = PodControl(self.client, self.recorder, DAEMON_SETS)
        self._expected: Expectations[Key] = Expectations()
        self._own_writes: OwnWrites[Key] = OwnWrites()
        self._backoff = FailedPodBackoff()
        self._sets = self.informers.for_resource(DAEMON_SETS)
        self._pods = self.informers.for_resource(PODS)
        self._nodes = self.informers.for_resource(NODES)
        self._revisions = self.informers.for_resource(CONTROLLER_REVISIONS)
        add_controller_index(self._pods)
        add_controller_index(self._revisions)
        self._pods.add_index(BY_NODE, by_node)
        self._sets.on_change(self._changed)
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)
        self._revisions.on_change(self._revision_changed)

    def _changed(self, old: DaemonSet | None, new: DaemonSet | None) -> None:
        key = key_of(new_or_old(old, new))
        if old is None:
            self._expected.forget(key)
        elif new is None:
            self._forget(key)
        self.queue.add(key)

    def _forget(self, key: Key) -> None:
        self._expected.forget(key)
        self._own_writes.forget(key)

    def _enqueue_soon(self, daemon_set: DaemonSet) -> None:
        """Queue a DaemonSet with a short delay, as more of its pods or nodes may change."""
        self.queue.add_after(key_of(daemon_set), min(len(self._nodes) * _DELAY_PER_NODE, _MAX_DELAY))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new_or_old(old, new)
        namespace = pod.metadata.namespace
        if new is None or new.metadata.deletion_timestamp:
            owner = resolve(self._sets, namespace, controller_of(pod))
            if owner is not None:
                self._expected.observe_deletion(key_of(owner), pod.metadata.uid)
                self._enqueue_soon(owner)
            return
        former, owner = owners_of_change(self._sets, old, new)
        for each in (former, owner):
            if each is not None:
                self._enqueue_soon(each)
        if owner is not None and old is None:
            self._expected.observe_creation(key_of(owner))
        for candidate in possible_owners(self._sets, may_own, old, new):
            self._enqueue_soon(candidate)

    def _revision_changed(self, old: ControllerRevision | None, new: ControllerRevision | None) -> None:
        one = new_or_old(old, new)
        owner = resolve(self._sets, one.metadata.namespace, controller_of(one))
        if owner is not None:
            if old is not None:
                self._enqueue_soon(owner)
        elif new is not None:
            for candidate in possible_owners(self._sets, may_own, None, new):
                self._enqueue_soon(candidate)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            return
        if old is not None and old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints:
            return
        controllers = map(controller_of, self._pods.indexed(BY_NODE, new.metadata.name))
        present = {each.uid for each in controllers if each is not None}
        for daemon_set in self._sets.list():
            should_run, may_stay = NodeMatcher(daemon_set)(new)
            if daemon_set.metadata.uid in present:
                is_concerned = not may_stay or daemon_set.status.number_misscheduled > 0
            else:
                is_concerned = should_run
            if is_concerned:
                self._enqueue_soon(daemon_set)

    async def sync(self, key: Key) -> None:
        daemon_set = self._sets.get(*key)
        if daemon_set is None:
            self._forget(key)
            return
        if self._own_writes.is_stale(key, daemon_set):
            return
        if daemon_set.spec.selector == LabelSelector():
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._record_event(daemon_set, "Warning", "SelectingAll", text)
            return
        if daemon_set.metadata.deletion_timestamp:
            return
        time_slice = TimeSlice()
        selector = await compile_selector(daemon_set.spec.selector)
        history = await History.load(self.client, daemon_set, await self._claimed_revisions(daemon_set, selector))
        pods = await self._claimed_pods(daemon_set, selector)
        current = await history.current(pods)
        hash_ = current.metadata.labels.get(REVISION_HASH, "")
        nodes = self._nodes.list()
        suits = NodeMatcher(daemon_set)
        verdicts = {node.metadata.name: suits(node) for node in nodes}
        await time_slice.pause_if_over()  # with many nodes each step takes milliseconds
        if not self._expected.are_satisfied(key):
            await self._update_status(key, daemon_set, pods, verdicts, hash_, observed=False)
            return
        errors = await self._apply_change(
            key, daemon_set, self._missing_and_surplus(daemon_set, pods_by_node(pods), verdicts, hash_), hash_
        )
        pods = await self._claimed_pods(daemon_set, selector)
        await time_slice.pause_if_over()
        if not errors:
            errors = await self._roll(key, daemon_set, pods, verdicts, hash_)
        if not errors:
            await history.clean_up(pods)
            pods = await self._claimed_pods(daemon_set, selector)
        await time_slice.pause_if_over()
        await self._update_status(key, daemon_set, pods, verdicts, hash_, observed=True)
        if errors:
            raise errors[0]

    async def _claimed_pods(self, daemon_set: DaemonSet, selector: Selector) -> list[Pod]:
        claims = Claims(self.client, DAEMON_SETS, daemon_set, PODS, lambda pod: selector.matches(pod.metadata.labels))
        uid, namespace = daemon_set.metadata.uid, daemon_set.metadata.namespace
        return await claims.claim((*controlled_by(self._pods, uid), *orphans(self._pods, namespace)))

    async def _claimed_revisions(self, daemon_set: DaemonSet, selector: Selector) -> list[ControllerRevision]:
        claims = Claims(
            self.client,
            DAEMON_SETS,
            daemon_set,
            CONTROLLER_REVISIONS,
            lambda each: selector.matches(each.metadata.labels),
        )
        uid, namespace = daemon_set.metadata.uid, daemon_set.metadata.namespace
        return await claims.claim((*controlled_by(self._revisions, uid), *orphans(self._revisions, namespace)))

    async def _roll(
        self, key: Key, daemon_set: DaemonSet, pods: Sequence[Pod], verdicts: Verdicts, hash_: str
    ) -> list[Exception]:
        """Continue a rolling update, once the effects of all earlier changes were observed. Return errors."""
        if daemon_set.spec.update_strategy.type != "RollingUpdate" or not self._expected.are_satisfied(key):
            return []
        suitable = {name for name, (should_run, _) in verdicts.items() if should_run}
        now = times.unix(times.now())
        return await self._apply_change(
            key, daemon_set, next_change(daemon_set, pods_by_node(pods), suitable, hash_, now), hash_
        )

    def _missing_and_surplus(
        self, daemon_set: DaemonSet, on_nodes: Mapping[str, Sequence[Pod]], verdicts: Verdicts, hash_: str
    ) -> Change:
        """Return the missing and surplus pods on nodes."""
        change = Change()
        surges = surge_of(daemon_set, 1) > 0
        for name, (should_run, may_stay) in verdicts.items():
            pods = on_nodes.get(name)
            if pods is None:
                if should_run:
                    change.nodes.append(name)
            elif not may_stay:
                change.pods += [pod for pod in pods if not pod.metadata.deletion_timestamp]
            else:
                running = self._running(daemon_set, name, pods, change)
                if surges and not running and should_run:
                    change.nodes.append(name)
                change.pods += _surplus(daemon_set, running, hash_) if surges else running[1:]
        for name, pods in on_nodes.items():
            if name not in verdicts:
                change.pods += [pod for pod in pods if not pod.spec.node_name]
        return change

    def _running(self, daemon_set: DaemonSet, node: str, pods: Sequence[Pod], change: Change) -> list[Pod]:
        """Return the running pods of a node, the oldest first, and add finished ones to the pods to delete."""
        running = []
        for pod in pods:
            if pod.metadata.deletion_timestamp:
                continue
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            if pod.status.phase == "Failed":
                wait = self._backoff.wait((daemon_set.metadata.uid, daemon_set.status.observed_generation, node))
                if wait > 0:
                    self.queue.add_after(key_of(daemon_set), wait)
                    continue
                text = f"Found failed daemon pod {name} on node {node}, will try to kill it"
                self._record_event(daemon_set, "Warning", "FailedDaemonPod", text)
                change.pods.append(pod)
            elif pod.status.phase == "Succeeded":
                text = f"Found succeeded daemon pod {name} on node {node}, will try to delete it"
                self._record_event(daemon_set, "Normal", "SucceededDaemonPod", text)
                change.pods.append(pod)
            else:
                running.append(pod)
        return sorted(running, key=_oldest_first)

    async def _apply_change(self, key: Key, daemon_set: DaemonSet, change: Change, hash_: str) -> list[Exception]:
        nodes, pods = change.nodes[:_BURST], change.pods[:_BURST]
        if not nodes and not pods:
            return []
        self._expected.expect(key, creations=len(nodes), deletions=(pod.metadata.uid for pod in pods))
        template = template_for(daemon_set, hash_)

        async def create(number: int) -> None:
            with ignoring(is_namespace_terminating):
                await self._control.create(
                    pod_from_template(bound_to(template, nodes[number]), DAEMON_SETS, daemon_set), daemon_set
                )

        async def delete(pod: Pod) -> None:
            try:
                await self._control.delete(pod, daemon_set)
            except (StatusError, Unreachable) as error:
                self._expected.observe_deletion(key, pod.metadata.uid)
                if isinstance(error, Unreachable):
                    raise
                if not is_not_found(error):
                    raise TryLater(f"unable to delete pods: {error}") from error

        succeeded, error = await slow_start(len(nodes), create)
        self._expected.observe_creation(key, len(nodes) - succeeded)
        errors = await run_all([partial(delete, pod) for pod in pods])
        return [error, *errors] if error is not None else errors

    async def _update_status(
        self, key: Key, daemon_set: DaemonSet, pods: Sequence[Pod], verdicts: Verdicts, hash_: str, *, observed: bool
    ) -> None:
        """Update the status if it has changed. After a refusal, retry once on the newest version."""
        now, seconds = times.unix(times.now()), daemon_set.spec.min_ready_seconds
        status = status_of(daemon_set, pods_by_node(pods), verdicts, hash_, now)
        generation = daemon_set.metadata.generation
        status.observed_generation = generation if observed else daemon_set.status.observed_generation
        if status != daemon_set.status or daemon_set.status.observed_generation < generation:
            replace = msgspec.structs.replace
            try:
                written = await self.client.update_status(DAEMON_SETS, replace(daemon_set, status=status))
            except StatusError:
                fresh = await self.client.get(DAEMON_SETS, key[1], key[0])
                status.collision_count = fresh.status.collision_count
                written = await self.client.update_status(DAEMON_SETS, replace(fresh, status=status))
            self._own_writes.record(key, written)
        if seconds > 0 and status.number_ready != status.number_available:
            self.queue.add_after(key, seconds)

    def _record_event(self, daemon_set: DaemonSet, type_: str, reason: str, message: str) -> None:
        self.recorder.event(reference(DAEMON_SETS, daemon_set), type_, reason, message)


def _oldest_first(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def _surplus(daemon_set: DaemonSet, running: Sequence[Pod], hash_: str) -> list[Pod]:
    """Return the surplus pods of a node that may have an old and a new pod: the old one once the new one is available."""
    if len(running) <= 1:
        return []
    new = [pod for pod in running if pod.metadata.labels.get(REVISION_HASH) == hash_]
    old = [pod for pod in running if pod.metadata.labels.get(REVISION_HASH) != hash_]
    surplus = [pod for pod in running if pod in new[1:] or pod in old[1:]]
    if new and old:
        now = times.unix(times.now())
        if not is_ready(old[0]) or is_available(new[0], daemon_set.spec.min_ready_seconds, now):
            surplus.append(old[0])
    return surplus


def pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the pods on each node, or to be scheduled to it, without finished pods that are being deleted."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if is_terminal(pod) and pod.metadata.deletion_timestamp:
            continue
        node = target_node(pod)
        if node is not None:
            by_node.setdefault(node, []).append(pod)
    return by_node


def status_of(
    daemon_set: DaemonSet, on_nodes: Mapping[str, Sequence[Pod]], verdicts: Verdicts, hash_: str, now: int
) -> DaemonSetStatus:
    """Return the status computed from the pods on nodes."""
    status = DaemonSetStatus(collision_count=daemon_set.status.collision_count, conditions=daemon_set.status.conditions)
    for name, (should_run, _) in verdicts.items():
        pods = on_nodes.get(name, ())
        if not should_run:
            status.number_misscheduled += bool(pods)
            continue
        status.desired_number_scheduled += 1
        if pods:
            status.current_number_scheduled += 1
            pod = min(pods, key=_oldest_first)
            status.number_ready += is_ready(pod)
            status.number_available += is_available(pod, daemon_set.spec.min_ready_seconds, now)
            status.updated_number_scheduled += is_updated(pod, daemon_set, hash_)
    status.number_unavailable = status.desired_number_scheduled - status.number_available
    return status
