"""The scheduler: follows nodes and pods, decides pod after pod, and writes the decisions
(pkg/scheduler/scheduler.go).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from steersman.api.core import v1 as core
from steersman.api.resource.v1 import ResourceClaim
from steersman.client.client import Client
from steersman.client.event_series import SeriesRecorder
from steersman.client.events import reference
from steersman.client.informer import Informers, new_or_old
from steersman.client.resources import BINDINGS, NAMESPACES, NODES, PODS
from steersman.client.transport import Unreachable
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import StatusError
from steersman.scheduler.cycle import NoPlacement, Placement
from steersman.scheduler.demand.weight import is_heavy
from steersman.scheduler.devices.binding import ClaimBinder
from steersman.scheduler.devices.pod_claims import ClaimPlan, missing_claim
from steersman.scheduler.devices.readiness import DevicesNotReady
from steersman.scheduler.fit.rankings import TooManyChanges
from steersman.scheduler.fit.status import DEFAULT_PREEMPTION, DYNAMIC_RESOURCES
from steersman.scheduler.model import Model
from steersman.scheduler.pod_status import patch_status
from steersman.scheduler.preemption.executor import Executor
from steersman.scheduler.queue.cluster_events import Action, ClusterEvent, node_changes, pod_changes
from steersman.scheduler.queue.scheduling_queue import QueuedPod, SchedulingQueue
from steersman.scheduler.volumes.binding import BindingFailed, VolumeBinder
from steersman.scheduler.volumes.pod_volumes import Plan
from steersman.work.yielding import TimeSlice

logger = logging.getLogger(__name__)

NAME: Final = "default-scheduler"
"""The `schedulerName` of pods that this scheduler decides."""
_MOST_REQUESTS: Final = 512
"""Requests in progress from which on no further pod is decided."""


class Scheduler:
    """The scheduler: `await start()`, then `await stop()`.

    `client` is system:kube-scheduler's; informers may be shared.
    """

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._pods = informers.for_resource(PODS)
        self._nodes = informers.for_resource(NODES)
        self._namespaces = informers.for_resource(NAMESPACES)
        self._model = Model(informers)
        self.cluster = self._model.cluster
        self._cycle = self._model.cycle
        self._nominator = self._model.nominator
        self._recorder = SeriesRecorder(client, NAME)
        self._binder = VolumeBinder(client, self._model.volumes)
        self._claim_binder = ClaimBinder(client, self._model.devices)
        self._executor = Executor(client, self._recorder, self._pods.get, self._activate)
        self.queue = SchedulingQueue(self.cluster.labels_of, self._gate_of)
        self._heavy: asyncio.Queue[QueuedPod] = asyncio.Queue()
        """Heavy pods, which take long to decide."""
        self._requests: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        """Tasks that wait for drivers to make devices ready."""
        self._fewer = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start. Pods are decided once all informers have synced. The owner of the informers starts them."""
        self._recorder.start()
        self._namespaces.on_change(self._namespace_changed)
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)
        for informer in (*self._model.volumes.all, *self._model.devices.all):
            informer.on_change(partial(self._other_changed, informer.resource.plural))
        self._task = asyncio.create_task(self._run(), name="scheduler")

    async def stop(self) -> None:
        """Stop, and cancel requests in progress."""
        tasks = [task for task in (self._task, *self._requests, *self._waiting) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.queue.close()
        await self._recorder.stop()

    @property
    def idle(self) -> bool:
        """True if nothing is in progress; pods may still wait for a change in the cluster."""
        return not self._requests and self._recorder.idle

    def forget_events(self) -> None:
        """Forget recorded event series, whose objects the server has lost."""
        self._recorder.forget()

    # Changes from informers

    def _namespace_changed(self, old: core.Namespace | None, new: core.Namespace | None) -> None:
        namespace = new_or_old(old, new)
        self.cluster.set_namespace(namespace.metadata.name, None if new is None else new.metadata.labels)

    def _node_changed(self, old: core.Node | None, new: core.Node | None) -> None:
        if new is None:
            assert old is not None
            self.queue.move_all(ClusterEvent("nodes", Action.DELETE, old))
            self.cluster.remove_node(old.metadata.name)
            return
        if old is None:
            self.cluster.set_node(new)
            self.queue.move_all(ClusterEvent("nodes", Action.ADD, None, new))
            return
        events = list(node_changes(old, new))
        if events or old.spec != new.spec or old.status.images != new.status.images:
            self.cluster.set_node(new)
        for event in events:
            self.queue.move_all(event)

    def _pod_changed(self, old: core.Pod | None, new: core.Pod | None) -> None:
        """Handle a change of a pod. A terminal pod counts as deleted."""
        if old is not None and is_terminal(old):
            old = None
        if new is not None and is_terminal(new):
            new = None
        if new is None:
            if old is not None:
                self._pod_gone(old)
        elif new.spec.node_name:
            self._assigned(old, new)
        elif new.spec.scheduler_name == NAME:
            self._unassigned(old, new)

    def _pod_gone(self, pod: core.Pod) -> None:
        uid = pod.metadata.uid
        if pod.spec.node_name:
            self.cluster.remove_pod(uid)
            self.queue.move_all(ClusterEvent("pods", Action.DELETE, pod))
            return
        self.queue.delete(uid)
        was_nominated = self._nominator.node_of(uid)
        self._nominator.remove(uid)
        assumed = self.cluster.forget(uid)
        if assumed is not None:
            self.queue.move_all(ClusterEvent("pods", Action.DELETE, assumed.pod))
        elif was_nominated:
            self._requeue_after_lost_nomination(pod)

    def _assigned(self, old: core.Pod | None, new: core.Pod) -> None:
        had_node = old is not None and bool(old.spec.node_name)
        self.cluster.set_pod(new)
        if had_node:
            assert old is not None
            for event in pod_changes(old, new):
                self.queue.move_all(event)
            return
        self.queue.delete(new.metadata.uid)
        self._nominator.remove(new.metadata.uid)
        self.queue.move_all(ClusterEvent("pods", Action.ADD, None, new))

    def _unassigned(self, old: core.Pod | None, new: core.Pod) -> None:
        uid = new.metadata.uid
        if self.cluster.is_assumed(uid):
            if new.metadata.deletion_timestamp and self.cluster.forget(uid) is not None:
                self.queue.move_all(ClusterEvent("pods", Action.DELETE, new))
            return
        self._nominator.update(new)
        if old is None:
            self.queue.add(new)
            return
        self.queue.update(old, new)
        before = old.status.nominated_node_name
        if before and before != new.status.nominated_node_name:
            self._requeue_after_lost_nomination(old)

    def _requeue_after_lost_nomination(self, pod: core.Pod) -> None:
        """Queue pods of the same or a lower priority, which treated the nominated pod as if it were on its node."""
        priority = pod.spec.priority or 0
        event = ClusterEvent("pods", Action.DELETE, pod)
        self.queue.move_all(event, only=lambda other: (other.spec.priority or 0) <= priority)

    def _other_changed(self, resource: str, old: object, new: object) -> None:
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        self.queue.move_all(ClusterEvent(resource, action, old, new))

    def _activate(self, uid: str) -> None:
        self.queue.activate(uid)

    # Decisions

    async def _run(self) -> None:
        for informer in (self._namespaces, self._nodes, self._pods):
            await informer.wait_until_synced()
        await self._model.synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._decide_pods(), name="decisions about pods")
            group.create_task(self._decide_heavy_pods(), name="decisions about heavy pods")

    async def _decide_pods(self) -> None:
        time_slice = TimeSlice()
        while True:
            queued = await self.queue.pop()
            if is_heavy(queued.pod):
                self._heavy.put_nowait(queued)
                continue
            await self._try(queued)
            while len(self._requests) >= _MOST_REQUESTS:
                self._fewer.clear()
                await self._fewer.wait()
            await time_slice.pause_if_over()

    async def _decide_heavy_pods(self) -> None:
        """Decide heavy pods one after the other, concurrently with all other pods and for half of the time."""
        loop = asyncio.get_running_loop()
        while True:
            queued = await self._heavy.get()
            metadata = queued.pod.metadata
            now = self._pods.get(metadata.namespace, metadata.name)
            if now is None or now.metadata.uid != queued.uid:
                self.queue.done(queued.uid)
                continue
            began = loop.time()
            await self._try(queued)
            await self._cycle.free_heavy()
            await asyncio.sleep(loop.time() - began)

    async def _try(self, queued: QueuedPod) -> None:
        try:
            await self._schedule(queued)
        except TooManyChanges:
            self._fail(queued, NoPlacement("the cluster changes faster than the pod is decided"), "SchedulerError")
        except Exception as error:
            logger.exception("scheduling of %s", queued.pod.metadata.name)
            self._fail(queued, NoPlacement(str(error)), "SchedulerError")

    async def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        metadata = pod.metadata
        if metadata.deletion_timestamp:
            note = f"skip schedule deleting pod: {metadata.namespace}/{metadata.name}"
            self._recorder.event(reference(PODS, pod), "Warning", "FailedScheduling", "Scheduling", note)
            self.queue.done(queued.uid)
            return
        if self.cluster.is_assumed(queued.uid):
            self.queue.done(queued.uid)
            return
        decided = await self._cycle.decide(pod)
        if isinstance(decided, NoPlacement):
            self._fail(queued, decided, "Unschedulable")
            return
        self._place(queued, decided)

    def _gate_of(self, pod: core.Pod) -> str:
        """Return the plugin that keeps a pod from being tried, or "": its claims are missing, or preemption for it is
        running.
        """
        if pod.spec.resource_claims and missing_claim(pod, self._model.devices):
            return DYNAMIC_RESOURCES
        return DEFAULT_PREEMPTION if self._executor.is_preempting(pod.metadata.uid) else ""

    def _place(self, queued: QueuedPod, placed: Placement) -> None:
        pod = queued.pod
        name = placed.node.name
        spec = msgspec.structs.replace(pod.spec, node_name=name)
        self.cluster.assume(msgspec.structs.replace(pod, spec=spec), name, placed.terms)
        self._nominator.remove(queued.uid)
        self.queue.done(queued.uid)
        volumes = self._binder.assume(placed.volumes, name) if placed.volumes else None
        if placed.claims is not None:
            self._claim_binder.assume(placed.claims)
        self._start_request(self._bind(queued, pod, name, volumes, placed.claims))

    async def _bind(
        self, queued: QueuedPod, pod: core.Pod, node_name: str, volumes: Plan | None, claims: ClaimPlan | None
    ) -> None:
        metadata = pod.metadata
        binding = {
            "kind": "Binding",
            "apiVersion": BINDINGS.api_version,
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        step = "PreBind"
        plugin = "VolumeBinding"
        try:
            if volumes is not None or claims is not None:
                await patch_status(self._client, pod, nominated=node_name)
            if volumes is not None:
                await self._binder.bind(volumes, node_name)
            if claims is not None:
                plugin = "DynamicResources"
                await self._claim_binder.bind(claims, pod)
                if self._claim_binder.must_wait(claims):
                    self._stop_counting_request()
                    note = f"waiting for binding conditions for device on node {node_name}"
                    self._recorder.event(reference(PODS, pod), "Normal", "BindingConditionsPending", "Scheduling", note)
                    await self._claim_binder.wait(claims)
            step, plugin = "Bind", "DefaultBinder"
            await self._client.post_to_subresource(PODS, metadata.name, metadata.namespace, "binding", encode(binding))
        except (StatusError, Unreachable, BindingFailed, DevicesNotReady) as error:
            if volumes is not None:
                self._binder.revert(volumes)
            if claims is not None:
                self._claim_binder.revert(claims)
            forgotten = self.cluster.forget(metadata.uid)
            if forgotten is not None:
                self.queue.move_all(ClusterEvent("pods", Action.DELETE, forgotten.pod))
            message = f'running {step} plugin "{plugin}": {error}'
            self._fail(queued, NoPlacement(message, nominated=""), "SchedulerError")
            return
        note = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node_name}"
        self._recorder.event(reference(PODS, pod), "Normal", "Scheduled", "Binding", note)

    def _fail(self, queued: QueuedPod, unplaced: NoPlacement, reason: str) -> None:
        """Put a pod back into the queue, record the reason as an event, and write it into the pod's status."""
        pod = queued.pod
        queued.plugins, queued.pending_plugins = unplaced.plugins, unplaced.pending_plugins
        queued.similarity_key = unplaced.similarity_key
        now = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        if now is None or now.spec.node_name or now.metadata.uid != queued.uid:
            self.queue.done(queued.uid)
            return
        room = unplaced.preemption
        if room is not None:
            self._executor.begin(now)
        if unplaced.nominated:
            self._nominator.nominate(now, unplaced.nominated)
        elif unplaced.nominated is not None:
            self._nominator.remove(queued.uid)
        self.queue.add_unschedulable(queued, now)
        self._recorder.event(reference(PODS, now), "Warning", "FailedScheduling", "Scheduling", unplaced.message)
        condition = core.PodCondition(
            type="PodScheduled",
            status="False",
            reason=reason,
            message=unplaced.message,
            observed_generation=now.metadata.generation,
        )
        self._start_request(self._report_failure(now, condition, unplaced))

    async def _report_failure(self, pod: core.Pod, condition: core.PodCondition, unplaced: NoPlacement) -> None:
        room = unplaced.preemption
        try:
            await patch_status(self._client, pod, condition, nominated=unplaced.nominated)
        except (StatusError, Unreachable) as error:
            logger.warning("the condition of %s: %s", pod.metadata.name, error)
        if unplaced.claim_to_release is not None:
            await self._release(unplaced.claim_to_release)
        if room is not None:
            priority = pod.spec.priority or 0
            losing = [info.pod for info in self._nominator.on(room.node.name) if info.priority < priority]
            victims = [info.pod for info in room.victims if not info.pod.metadata.deletion_timestamp]
            await self._executor.make_room(pod, room.node.name, victims, losing)

    async def _release(self, claim: ResourceClaim) -> None:
        try:
            await self._claim_binder.release(claim)
        except (StatusError, Unreachable) as error:
            logger.warning("claim %s/%s: %s", claim.metadata.namespace, claim.metadata.name, error)

    def _stop_counting_request(self) -> None:
        """Stop counting the current task as a request in progress, as it may wait for minutes."""
        task = asyncio.current_task()
        assert task is not None
        self._requests.discard(task)
        self._waiting.add(task)
        self._fewer.set()

    def _start_request(self, request: Coroutine[Any, Any, None]) -> None:
        """Run a request to the server while the next pod is decided."""
        task = asyncio.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._request_ended)

    def _request_ended(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        self._waiting.discard(task)
        self._fewer.set()
        if not task.cancelled() and task.exception() is not None:
            logger.error("scheduler", exc_info=task.exception())
