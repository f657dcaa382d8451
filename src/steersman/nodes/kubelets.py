"""Kubelets of simulated nodes: they register nodes, send heartbeats, and sync pods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from steersman.api.core.v1 import Node, ObjectReference, PersistentVolume, Pod, PodStatus
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.events import Broadcaster, reference
from steersman.client.indexes import BY_NODE
from steersman.client.informer import Informers, Key, key_of
from steersman.client.pod_status import patch_pod_status
from steersman.client.resources import NODES, PERSISTENT_VOLUMES, PODS
from steersman.client.transport import Unreachable
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.codec.serializer import deep_copy, to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.nodes.admission import refusal
from steersman.nodes.adoption import Adoption, NodeHooks
from steersman.nodes.behaviour import PREFIX, duration_of
from steersman.nodes.container.probes import due_commands
from steersman.nodes.contents import PodContents
from steersman.nodes.context import CommandResult, ContainerRecord, PodContext, PodEvent
from steersman.nodes.current_world import run_command
from steersman.nodes.devices.preparation import Preparation, Prepared
from steersman.nodes.devices.publisher import SlicePublisher
from steersman.nodes.devices.slices import DeviceSets
from steersman.nodes.disturbances import Disturbances, LateSyncs
from steersman.nodes.eviction import CONDITIONS, EVERY, event_of, message_of, pressure_of, victim
from steersman.nodes.heartbeats import Heartbeats
from steersman.nodes.initial_world import initial_world, variables_of
from steersman.nodes.needs import Needs
from steersman.nodes.node_set import UNREACHABLE, NodeSet
from steersman.nodes.pod_life import PodSyncResult, sync_pod, takes_long
from steersman.nodes.pod_status import rejected
from steersman.nodes.rehearsal import Unknown
from steersman.nodes.resize import NodeCapacity
from steersman.nodes.secret_makers import ClientOf, create_secrets
from steersman.nodes.server.servers import WEBHOOKS, NodeServers
from steersman.nodes.shell.effects import World
from steersman.nodes.simulated_node import SimulatedNode
from steersman.nodes.sources import Sources
from steersman.nodes.unsimulated import REASON, event_message, fields_without_effect
from steersman.nodes.volume_store import MOST_IN_VOLUME
from steersman.nodes.volumes import NodeVolumes, uses_claims
from steersman.work import simulated_time
from steersman.work.offloading import offload, offload_if
from steersman.work.work_queue import WorkQueue
from steersman.work.yielding import time_sliced

if TYPE_CHECKING:  # most clusters have no stages
    from steersman.nodes.stages.players import StagePlayers

logger = logging.getLogger(__name__)

_WORKERS: Final = 32
_MERGE_KEYS: Final = {"conditions": "type", "hostIPs": "ip", "podIPs": "ip"}
"""Keys by which a strategic merge patch merges the lists of a pod's status that kubelets write."""
_LONGEST_WAIT: Final = 86400.0
"""Seconds between two syncs of a pod at most, as a timer of the event loop cannot be set for any length of time."""


class Kubelets(NodeHooks):
    """Kubelets of all simulated nodes: `await start()`, then `await stop()`.

    `client` writes for all nodes. `servers` are the HTTP servers of the nodes, which this object starts and stops.
    `stages` replace the built-in behaviour of the kinds that they are for. `client_of_account` returns a client with the rights
    of a service account, for work that containers do in the API.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        events: Broadcaster,
        nodes: NodeSet,
        servers: NodeServers,
        stages: StagePlayers | None = None,
        client_of_account: ClientOf | None = None,
        devices: DeviceSets | None = None,
        disturbances: Disturbances | None = None,
    ) -> None:
        self._client = client
        self._client_of_account = client_of_account
        self._pods = informers.for_resource(PODS)
        self._node_objects = informers.for_resource(NODES)
        self._persistent = informers.for_resource(PERSISTENT_VOLUMES)
        self._events = events
        self.nodes: Final = nodes
        self._volumes = NodeVolumes(client, informers, self.nodes)
        self._needs = Needs(Sources(client))
        self._servers = servers
        self._stages = stages
        self.heartbeats: Final = Heartbeats(
            client.with_own_limit(), self._node_objects, nodes, reports=lambda: not self._stages_rule_nodes
        )
        self._adoption = Adoption(nodes, servers, self.heartbeats, self._node_objects, self)
        devices = devices or DeviceSets()
        self._preparation = Preparation(client, informers, devices)
        self._publisher = SlicePublisher(client, informers, devices, nodes.__contains__) if devices.drivers else None
        self._started = False
        self._queue: WorkQueue[Key] = WorkQueue(base_delay=0.05, max_delay=30)
        self._nodes_of_pods: dict[Key, SimulatedNode] = {}
        self._expected: dict[Key, tuple[Pod, PodStatus]] = {}
        """Synced pods and their written statuses, where the watch event of that write needs no sync."""
        self._returned: asyncio.Queue[SimulatedNode] = asyncio.Queue()
        """Nodes that are reachable again or whose pressure has changed."""
        self._large_sync_lock = asyncio.Lock()
        """Held while a large pod is synced in a worker thread: more at once would only delay the event loop."""
        self._pressed = asyncio.Event()
        """Set while a node is under pressure."""
        self._disturbances = disturbances
        self._disturbed = asyncio.Event()
        """Set when other kubelets are disturbed than before."""
        self._late = LateSyncs(disturbances)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Register the nodes, then start syncing their pods. Raises StatusError, Unreachable."""
        for node in self.nodes.values():
            self._servers.add(node)
        await self.heartbeats.register_all()
        self._servers.start(self._client, self._pods)
        containers = self._servers.containers
        containers.resync = self._queue.add
        self._servers.refused = self._record_refusal
        containers.contents.volume_of = self._volumes.volume_of
        containers.contents.unknown_programs_of = self._unknown_programs_of
        containers.contents.full = partial(self._volume_is_full, asyncio.get_running_loop())
        self._persistent.on_change(self._volume_changed)
        self._node_objects.on_change(self._node_changed)
        self._pods.on_change(self._changed)
        self._volumes.start(self._queue.add)
        self._preparation.start(self._queue.add)
        await self._needs.start(self._queue.add)
        await (
            self._pods.wait_until_synced()
        )  # so that addresses of existing pods are known before new ones are allocated
        self._started = True
        if self._stages is not None:
            self._start_stages(self._stages)
        self._queue.start(self._sync, self._failed, name="kubelets", workers=_WORKERS)
        await self._adoption.start()
        if self._publisher is not None:
            await self._publisher.start()
        self._tasks = [
            asyncio.create_task(self.heartbeats.run(), name="heartbeats of nodes"),
            asyncio.create_task(self._resume_returned_nodes(), name="nodes that return"),
            asyncio.create_task(self._evict_under_pressure(), name="nodes under pressure"),
        ]
        if self._disturbances is not None:
            self._disturbances.on_nodes = self._disturbed.set
            self._tasks.append(asyncio.create_task(self._follow_disturbances(), name="disturbed nodes"))

    async def stop(self) -> None:
        """Stop everything. The Node objects stay, and count as unreachable after a while."""
        if self._disturbances is not None:
            self._disturbances.on_nodes = None
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._queue.stop()
        if self._publisher is not None:
            await self._publisher.stop()
        await self._adoption.stop()
        await self._needs.stop()
        if self._stages is not None:
            await self._stages.stop()
        await self._servers.stop()

    @property
    def _stages_rule_nodes(self) -> bool:
        return self._stages is not None and self._stages.rule_nodes

    @property
    def _stages_rule_pods(self) -> bool:
        return self._stages is not None and self._stages.rule_pods

    def play_stages(self, stages: StagePlayers) -> None:
        """Play stages from now on, if none were played before."""
        self._stages = stages
        if self._started:
            self._start_stages(stages)

    def _start_stages(self, stages: StagePlayers) -> None:
        stages.on_rules = self._sync_all
        stages.start()
        if stages.rule_pods:
            self._sync_all()

    def _sync_all(self) -> None:
        """Sync all pods, as stages have taken them over or have left them."""
        for key in tuple(self._nodes_of_pods):
            self._queue.add(key)

    @property
    def idle(self) -> bool:
        """True if no pod needs a sync now; some may be due later."""
        others = (self._adoption, self._stages, self._publisher)
        return self._queue.idle and all(each is None or each.idle for each in others)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if new is None and old is not None:
            self._servers.containers.contents.forget_volume(old)

    def _unknown_programs_of(self, pod: Pod) -> Unknown | None:
        node = self.nodes.get(pod.spec.node_name)
        return None if node is None else node.template.unknown_programs

    def adopted(self, node: SimulatedNode, obj: Node) -> None:
        """Set up a node that is simulated from now on, and sync its pods."""
        self._node_changed(None, obj)
        if self._publisher is not None:
            self._publisher.add(node.name)
        if self._stages is not None:
            self._stages.resume_node(node)
        for pod in self._pods.indexed(BY_NODE, node.name):
            self._changed(None, pod)

    def booted(self, node: SimulatedNode) -> None:
        """Report that a node is ready, and sync its pods."""
        self._returned.put_nowait(node)

    def left(self, node: SimulatedNode) -> None:
        """Forget the pods of a node that is no longer simulated, once none of them is synced."""
        for key in {*node.pods, *map(key_of, self._pods.indexed(BY_NODE, node.name))}:
            if self._nodes_of_pods.get(key) is node:
                self._queue.add(key)

    def refused(self, obj: Node, why: str) -> None:
        """Record that a node cannot be simulated."""
        self._events.recorder("kubelet", obj.metadata.name).event(reference(NODES, obj), "Warning", "NotSimulated", why)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """Apply the annotations of a Node object to the simulated node."""
        node = None if new is None else self.nodes.get(new.metadata.name)
        if node is None or new is None:
            return
        said, before = new.metadata.annotations, node.unreachable
        node.start_delay = duration_of(said.get(f"{PREFIX}start-delay", ""))
        node.unreachable = said.get(UNREACHABLE) == "true" or self._is_silent(node.name)
        pressure, node.pressure = node.pressure, pressure_of(new)
        for condition in CONDITIONS:
            if (condition in pressure) != (condition in node.pressure):
                self._record_node_event(new, event_of(condition, there=condition in node.pressure))
        if node.pressure and not self._stages_rule_pods:
            self._pressed.set()
        if (before or pressure != node.pressure) and not node.unreachable:
            self._returned.put_nowait(node)

    def _is_silent(self, node: str) -> bool:
        return self._disturbances is not None and self._disturbances.is_silent(node)

    async def _follow_disturbances(self) -> None:
        """Silence and resume nodes, and sync delayed pods, whenever the disturbances change."""
        while True:
            await self._disturbed.wait()
            self._disturbed.clear()
            async for name in time_sliced(tuple(self.nodes)):
                if (known := self._node_objects.get("", name)) is not None:
                    self._node_changed(known, known)
            async for key in time_sliced(self._late.release()):
                self._queue.add(key)

    async def _resume_returned_nodes(self) -> None:
        """Send a report for each node that has become reachable, and sync its pods."""
        while True:
            node = await self._returned.get()
            await self.heartbeats.send(node, reports=True)
            if self._stages is not None:
                self._stages.resume_node(node)
            for pod in self._pods.indexed(BY_NODE, node.name):
                self._queue.add(key_of(pod))

    # Pods

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            self._servers.containers.forget(old, gone=True)
            self._needs.forget(old)
            if self.nodes.get(old.spec.node_name) is None:
                self._expected.pop(key_of(old), None)
        pod = new or old
        if pod is not None and (node := self.nodes.get(pod.spec.node_name)) is not None:
            if new is None or is_terminal(new):
                node.allocated.remove(key_of(pod))
                self._servers.end_connections(pod.metadata.uid)
            elif new.status.start_time:
                node.allocated.put(new)
            if new is not None:
                self._keep_address(new, node)
            if not self._is_expected(key_of(pod), old, new):
                self._queue.add(key_of(pod))

    def _keep_address(self, pod: Pod, node: SimulatedNode) -> None:
        """Reserve the address that a pod already has, perhaps from an earlier process, so that no other pod gets it."""
        if (
            pod.status.pod_ip
            and not pod.spec.host_network
            and self._nodes_of_pods.setdefault(key_of(pod), node) is node
        ):
            node.address_of(key_of(pod), pod.status.pod_ip)

    def _is_expected(self, key: Key, old: Pod | None, new: Pod | None) -> bool:
        """Return True if the only change of a pod is the status that its sync wrote, after which no sync is needed."""
        looked_at, status = self._expected.pop(key, (None, None)) if self._expected else (None, None)
        return looked_at is not None and looked_at is old and new is not None and new.status == status

    @staticmethod
    def _failed(key: Key, error: Exception) -> None:
        if not isinstance(error, (StatusError, Unreachable)):
            logger.error("pod %s/%s", *key, exc_info=error)
        elif not (isinstance(error, StatusError) and (is_conflict(error) or is_not_found(error))):
            logger.warning("pod %s/%s: %s", *key, error)

    async def _sync(self, key: Key) -> None:
        pod = self._pods.get(*key)
        node = None if pod is None else self.nodes.get(pod.spec.node_name)
        known = self._nodes_of_pods.get(key)
        if known is not None and known is not node:
            known.release(key)
            known.allocated.remove(key)
            await self._release(key, known)
            self._nodes_of_pods.pop(key, None)
        if pod is None or node is None or node.unreachable or node.boots:
            self._late.forget(key)
            return
        if wait := self._late.wait_of(key, node.name):
            self._queue.add_after(key, wait)
            return
        is_new = not pod.status.start_time and not is_terminal(pod) and pod.metadata.deletion_timestamp is None
        if is_new and not self._stages_rule_pods and await self._is_refused(pod, node):
            return
        self._nodes_of_pods[key] = node
        if self._stages_rule_pods:
            return
        address = node.address if pod.spec.host_network else node.address_of(key, pod.status.pod_ip)
        mounted = await self._mount(pod, node)
        containers, uid = self._servers.containers, pod.metadata.uid
        found = await self._needs.check(pod)
        prepared = Prepared(True) if is_terminal(pod) else await self._preparation.prepare(pod)
        self._record_events(node, pod, [*found.events, *prepared.events])
        now = times.unix_now()
        context = self._context(node, address, uid, mounted=mounted and found.mounted and prepared.is_ready)
        shared = await self._shared(node, pod, context.records, now) if context.mounted else None
        work_errors = await self._work_errors(node, pod) if context.mounted else {}
        context = replace(
            context, shared=shared, eviction_message=containers.eviction_message(uid), work_errors=work_errors
        )
        results = await self._run_due_commands(pod, context.records, now)
        done = await self._sync_pod(pod, replace(context, config_error=found.config_error, results=results), now)
        containers.set_records(uid, done.records)
        node.has_pulled(done.pulled)
        if done.changed:
            if done.is_settled:
                self._expected[key] = pod, done.status
            try:
                await patch_pod_status(self._client, pod, _status_patch(pod.status, done.status))
            except BaseException:
                self._expected.pop(key, None)
                raise
        self._record_events(node, pod, done.events)
        if is_terminal(pod) or done.is_finished:
            node.allocated.remove(key)
            await self._release(key, node)
        if is_terminal(pod):
            containers.forget(pod, gone=False)
        if done.is_finished:
            await self._delete(pod)
        else:
            dues = (
                done.next_sync,
                found.next_sync,
                prepared.next_sync,
                None if shared is None else shared.next_sync(now),
            )
            next_sync = min((each for each in dues if each is not None), default=None)
            if next_sync is not None:
                self._queue.add_after(key, min(max(next_sync - now, 0.001), _LONGEST_WAIT))

    async def _work_errors(self, node: SimulatedNode, pod: Pod) -> dict[str, str]:
        """Do the work of containers that create Secrets. Return the error of each by container name, "" for success."""
        if self._client_of_account is None or is_terminal(pod):
            return {}

        def variables(container: AnyContainer) -> Awaitable[Mapping[str, str]]:
            return variables_of(self._client, pod, container, node.template.allocatable)

        return await create_secrets(self._client_of_account, pod, variables)

    async def _sync_pod(self, pod: Pod, context: PodContext, now: float) -> PodSyncResult:
        """Sync a pod, in a worker thread if the pod is large."""
        if not takes_long(pod):
            return sync_pod(pod, context, now)
        async with self._large_sync_lock:
            return await offload_if(True, sync_pod, pod, context, now)

    async def _is_refused(self, pod: Pod, node: SimulatedNode) -> bool:
        """Return True if the node rejects a pod that is new to it, after writing the rejected pod's status."""
        known = self._node_objects.get("", node.name)
        refused = None if known is None else refusal(pod, known, node.allocated, node.pressure)
        if refused is None:
            node.allocated.put(pod)
            if fields := await offload_if(takes_long(pod), fields_without_effect, pod):
                self._record_events(node, pod, [PodEvent("Normal", REASON, event_message(fields))])
            return False
        self._record_events(node, pod, [PodEvent("Warning", refused.reason, refused.message)])
        status = rejected(pod, refused.reason, refused.message, times.now())
        await patch_pod_status(self._client, pod, _status_patch(pod.status, status))
        return True

    async def _evict_under_pressure(self) -> None:
        """Evict pods from nodes under pressure, one pod of each node at a time."""
        containers, usages = self._servers.containers, self._servers.containers.usages
        while True:
            await self._pressed.wait()
            self._pressed.clear()
            for node in tuple(self.nodes.values()):
                if not node.pressure or node.unreachable:
                    continue
                self._pressed.set()
                pods = [
                    each for each in self._active_pods(node.name) if not containers.eviction_message(each.metadata.uid)
                ]
                if (pod := await offload(victim, pods, node.pressure, usages)) is not None:
                    text = await offload(message_of, pod, node.pressure, usages)
                    self._record_events(node, pod, [PodEvent("Warning", "Evicted", text)])
                    containers.evict(pod, text)
            await simulated_time.sleep(EVERY)

    async def _run_due_commands(
        self, pod: Pod, records: Mapping[str, ContainerRecord], now: float
    ) -> dict[tuple[str, str], CommandResult]:
        """Run the commands of probes and hooks that are due."""
        containers = self._servers.containers
        return {
            (each.status.name, each.kind): await run_command(self._client, containers, pod, each)
            for each in due_commands(pod, records, now)
        }

    async def _shared(
        self, node: SimulatedNode, pod: Pod, records: Mapping[str, ContainerRecord], now: float
    ) -> PodContents | None:
        """Return the files that a pod's containers share, with the due steps of commands run; None if it shares none.

        Evicts the pod if the files exceed the size limit of a volume. Raises Unreachable.
        """
        containers = self._servers.containers
        found = None if is_terminal(pod) or self._is_gone(pod) else containers.contents.for_pod(pod)
        if found is None:
            return None

        def world_of(container: AnyContainer) -> Awaitable[World]:
            return initial_world(self._client, pod, container, allocatable=node.template.allocatable, tokens=False)

        await found.start_and_run(records, world_of, now)
        if (text := found.size_limit_error()) and not containers.eviction_message(pod.metadata.uid):
            self._record_events(node, pod, [PodEvent("Warning", "Evicted", text)])
            containers.evict(pod, text)
        return found

    def _is_gone(self, pod: Pod) -> bool:
        current = self._pods.get(*key_of(pod))
        return current is None or current.metadata.uid != pod.metadata.uid

    def _volume_is_full(self, loop: asyncio.AbstractEventLoop, pod: Pod, volume: str) -> None:
        """Record an event. Called in worker threads, too, where large pods are synced."""
        loop.call_soon_threadsafe(self._record_full_volume, pod, volume)

    def _record_full_volume(self, pod: Pod, volume: str) -> None:
        node = self.nodes.get(pod.spec.node_name)
        if node is not None:
            text = f'Volume "{volume}" is full: simulated volumes hold {MOST_IN_VOLUME} bytes of files'
            self._record_events(node, pod, [PodEvent("Warning", "VolumeFull", text)])

    async def _mount(self, pod: Pod, node: SimulatedNode) -> bool:
        """Return True if the volumes of a pod's claims are attached and ready."""
        if not uses_claims(pod) or is_terminal(pod):
            return True
        resized = await self._volumes.set_up(pod, node.name)
        for name in resized or ():
            text = f'MountVolume.NodeExpandVolume succeeded for volume "{name}" {node.name}'
            self._record_events(node, pod, [PodEvent("Normal", "FileSystemResizeSuccessful", text)])
        return resized is not None or bool(pod.status.pod_ip)  # a pod that has started goes on

    async def _release(self, key: Key, node: SimulatedNode) -> None:
        """Release the claims and volumes of a pod that has ended. Raises StatusError, Unreachable."""
        await self._preparation.release(key)
        if self._volumes.has(key):
            await self._volumes.release(key, node.name)

    def _context(self, node: SimulatedNode, address: str, uid: str, *, mounted: bool) -> PodContext:
        containers = self._servers.containers
        capacity = NodeCapacity(node.template.allocatable, partial(self._active_pods, node.name))
        return PodContext(
            (node.address,),
            (address,),
            mounted,
            containers.exits(uid),
            containers.records(uid),
            node.start_delay,
            capacity,
            node.template.missing_images,
            node.images,
            containers.eviction_message(uid),
            unknown_programs=node.template.unknown_programs,
        )

    def _active_pods(self, node: str) -> list[Pod]:
        return [each for each in self._pods.indexed(BY_NODE, node) if not is_terminal(each)]

    async def _delete(self, pod: Pod) -> None:
        options = DeleteOptions(grace_period_seconds=0, preconditions=Preconditions(uid=pod.metadata.uid))
        with ignoring(is_not_found):
            await self._client.delete(PODS, pod.metadata.name, pod.metadata.namespace, options)

    def _record_refusal(self, pod: Pod) -> None:
        """Record once per pod that it refused a request as a webhook or aggregated API server, and the way to allow
        them.
        """
        node = self.nodes.get(pod.spec.node_name)
        if node is not None and self._servers.containers.is_first_refusal(pod):
            self._record_events(
                node,
                pod,
                [
                    PodEvent(
                        "Warning",
                        "NotSimulated",
                        (
                            "requests by TLS, such as those of webhooks and APIServices, are refused: no container is run. "
                            f'"answerWebhooks: true" in the file of --config, or the annotation {WEBHOOKS}=allow of the pod, has '
                            "all of them allowed"
                        ),
                    )
                ],
            )

    def _record_node_event(self, node: Node, reason: str) -> None:
        recorder = self._events.recorder("kubelet", node.metadata.name)
        about = ObjectReference(kind="Node", name=node.metadata.name, uid=node.metadata.name)
        recorder.event(about, "Normal", reason, f"Node {node.metadata.name} status is now: {reason}")

    def _record_events(self, node: SimulatedNode, pod: Pod, events: Sequence[PodEvent]) -> None:
        recorder = self._events.recorder("kubelet", node.name)
        about = reference(PODS, pod)
        for each in events:
            of = _part(about, each.field_path) if each.field_path else about
            recorder.event(of, each.type, each.reason, each.message)


def _part(about: ObjectReference, field_path: str) -> ObjectReference:
    part = deep_copy(about)
    part.field_path = field_path
    return part


def _status_patch(old: PodStatus, new: PodStatus) -> dict[str, Any]:
    """Return a patch with the changed fields of a status. Of lists that are merged by a key, it has the changed elements
    and deletions.
    """
    before, after = to_plain(old), to_plain(new)
    patch = {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}
    for name, key in _MERGE_KEYS.items():
        if name not in patch:
            continue
        known = {each[key]: each for each in before.get(name) or ()}
        there = {each[key]: each for each in after.get(name) or ()}
        patch[name] = [
            *(
                {**dict.fromkeys(known.get(value, {})), **each}  # null removes a member that is gone
                for value, each in there.items()
                if each != known.get(value)
            ),
            *({key: value, "$patch": "delete"} for value in known if value not in there),
        ]
    return patch
