"""Stage controllers for the simulated pods and nodes of a cluster, and for objects of any other kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from steersman.api.core.v1 import Node, Pod
from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.indexes import BY_NODE
from steersman.client.informer import Informer, Informers, key_of, new_or_old
from steersman.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS
from steersman.nodes.simulated_node import SimulatedNode
from steersman.nodes.stages import declaration
from steersman.nodes.stages.applying import Applying
from steersman.nodes.stages.declaration import ResourceRef
from steersman.nodes.stages.functions import functions_of_node, functions_of_pod
from steersman.nodes.stages.kinds import resource_of
from steersman.nodes.stages.open_objects import OpenObject
from steersman.nodes.stages.player import StagePlayer
from steersman.nodes.stages.sprig.checks import by_chance
from steersman.nodes.stages.stage_set import Stages
from steersman.work.work_queue import TryLater, WorkQueue

logger = logging.getLogger(__name__)

_COMPONENT: Final = "kwok_controller"
"""Source of the events, as in kwok."""
_MOST_KINDS: Final = 200
"""Kinds other than Pod and Node that are followed, as each takes a watch and a copy of the kind's objects."""
_LONGEST: Final = 10.0
"""Seconds after which a kind that is not served is looked for again."""


class StagePlayers:
    """Stage controllers of all kinds with stages: `start`, then `await stop()`.

    Objects of unreachable nodes stay as they are until `resume_node` is called.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        events: Broadcaster,
        nodes: Mapping[str, SimulatedNode],
        stages: Stages,
    ) -> None:
        self._client = client
        self._pod_objects = informers.for_resource(PODS)
        self._node_objects = informers.for_resource(NODES)
        self._definitions = informers.for_resource(CUSTOM_RESOURCE_DEFINITIONS.metadata_only)
        self._nodes = nodes
        self._stages = stages
        self._recorder = events.recorder(_COMPONENT)
        self._applying = Applying(client)
        self._pods: StagePlayer[Pod] | None = None
        self._of_nodes: StagePlayer[Node] | None = None
        self._others: dict[ResourceRef, _Followed] = {}
        self._queue: WorkQueue[ResourceRef] = WorkQueue(base_delay=0.1, max_delay=_LONGEST)
        """Other kinds whose stages may have changed."""
        self._started = False
        self.served: Final[dict[ResourceRef, bool]] = {declaration.PODS: True, declaration.NODES: True}
        """Kinds with stages that were looked for; False for a kind that the server does not serve."""
        self.on_served: Callable[[], None] = _nothing
        """Function that is called when `served` has changed."""
        self.on_rules: Callable[[], None] = _nothing
        """Function that is called when `rule_pods` has changed."""

    @property
    def rule_pods(self) -> bool:
        """True if stages replace the built-in behaviour of pods."""
        return self._stages.pods is not None

    @property
    def rule_nodes(self) -> bool:
        """True if stages set the statuses of nodes."""
        return self._stages.nodes is not None

    @property
    def idle(self) -> bool:
        """True if no step is due now; some may be due later."""
        players = (self._pods, self._of_nodes, *(each.player for each in self._others.values()))
        return self._queue.idle and all(each.idle for each in players if each is not None)

    def start(self) -> None:
        """Start to play stages for existing and changed objects."""
        self._started = True
        self._queue.start(self._follow, name="kinds of stages", workers=1)
        self._pod_objects.on_change(self._pod_changed)
        self._node_objects.on_change(self._node_changed)
        self._definitions.on_change(lambda old, new: self._look_again())
        self.use(self._stages)

    async def stop(self) -> None:
        """Stop. Objects stay in their current stages."""
        await self._queue.stop()
        for player in (self._pods, self._of_nodes):
            if player is not None:
                await player.stop()
        for each in self._others.values():
            await each.stop()
        self._others.clear()

    def use(self, stages: Stages) -> None:
        """Play other stages from now on."""
        ruled = self.rule_pods
        before, self._stages = self._stages, stages
        if not self._started:
            return
        self._use_for_pods()
        self._use_for_nodes()
        for reference in {*before.kinds, *stages.kinds} - {declaration.PODS, declaration.NODES}:
            self._queue.forget(reference)
            self._queue.add(reference)
        if ruled != self.rule_pods:
            self.on_rules()

    def _use_for_pods(self) -> None:
        lifecycle = self._stages.pods
        if lifecycle is None:
            return
        if self._pods is not None:
            if self._pods.lifecycle is not lifecycle:
                self._pods.use(lifecycle)
            return
        chance = by_chance(self._stages.random)
        self._pods = StagePlayer(
            self._client,
            self._pod_objects,
            lifecycle,
            self._recorder,
            applying=self._applying,
            follows=lambda pod: self.rule_pods and self._is_reachable(pod.spec.node_name),
            functions=lambda pod: {**chance, **functions_of_pod(pod, self._nodes)},
        )
        self._pods.start()
        for pod in self._pod_objects.list():
            self._pod_changed(None, pod)

    def _use_for_nodes(self) -> None:
        lifecycle = self._stages.nodes
        if lifecycle is None:
            return
        if self._of_nodes is not None:
            if self._of_nodes.lifecycle is not lifecycle:
                self._of_nodes.use(lifecycle)
            return
        chance = by_chance(self._stages.random)
        self._of_nodes = StagePlayer(
            self._client,
            self._node_objects,
            lifecycle,
            self._recorder,
            applying=self._applying,
            follows=lambda node: self.rule_nodes and self._is_reachable(node.metadata.name),
            functions=lambda node: {**chance, **functions_of_node(self._nodes[node.metadata.name])},
        )
        self._of_nodes.start()
        for node in self._node_objects.list():
            self._node_changed(None, node)

    def resume_node(self, node: SimulatedNode) -> None:
        """Continue the stages of a node that is reachable again, and of its pods."""
        if self._of_nodes is not None:
            self._of_nodes.queue(("", node.name))
        if self._pods is not None:
            for pod in self._pod_objects.indexed(BY_NODE, node.name):
                self._pods.queue(key_of(pod))

    def _is_reachable(self, node: str) -> bool:
        found = self._nodes.get(node)
        return found is not None and not found.unreachable

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new_or_old(old, new)
        if self._pods is not None and pod.spec.node_name in self._nodes:
            self._pods.queue(key_of(pod))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new_or_old(old, new)
        if self._of_nodes is not None and node.metadata.name in self._nodes:
            self._of_nodes.queue(("", node.metadata.name))

    def _look_again(self) -> None:
        """Look for the kinds that were not served, now that a definition has changed."""
        for reference, served in self.served.items():
            if not served:
                self._queue.forget(reference)
                self._queue.add(reference)

    async def _follow(self, reference: ResourceRef) -> None:
        """Follow a kind if it has stages, with the current ones. Raises TryLater, StatusError, Unreachable."""
        lifecycle = self._stages.of(reference)
        followed = self._others.get(reference)
        if lifecycle is None:
            self.served.pop(reference, None)
            if self._others.pop(reference, None) is not None and followed is not None:
                await followed.stop()
            return
        if followed is not None:
            if followed.player.lifecycle is not lifecycle:
                followed.player.use(lifecycle)
            return
        resource = None
        if len(self._others) < _MOST_KINDS:
            resource = await resource_of(self._client, reference.api_group, reference.kind, watched=True)
        self._set_served(reference, served=resource is not None)
        if resource is None:
            raise TryLater(f"the server does not serve {reference}")
        objects: Informer[OpenObject] = Informer(self._client, resource)
        chance = by_chance(self._stages.random)
        player = StagePlayer(
            self._client,
            objects,
            lifecycle,
            self._recorder,
            applying=self._applying,
            follows=lambda _: True,
            functions=lambda _: chance,
        )
        self._others[reference] = _Followed(objects, player)
        self._others[reference].start()

    def _set_served(self, reference: ResourceRef, *, served: bool) -> None:
        if self.served.get(reference) is not served:
            self.served[reference] = served
            self.on_served()


class _Followed:
    """Kind of objects other than simulated pods and nodes."""

    def __init__(self, objects: Informer[OpenObject], player: StagePlayer[OpenObject]) -> None:
        self._objects = objects
        self.player: Final = player

    def start(self) -> None:
        self._objects.on_change(self._changed)
        self._objects.on_failure(partial(_log, self._objects.resource.group_resource))
        self.player.start()
        self._objects.start()

    async def stop(self) -> None:
        await self._objects.stop()
        await self.player.stop()

    def _changed(self, old: OpenObject | None, new: OpenObject | None) -> None:
        self.player.queue(key_of(new_or_old(old, new)))


def _nothing() -> None:
    """Do nothing."""


def _log(of: object, error: Exception) -> None:
    logger.info("stages of %s: %s", of, error)
