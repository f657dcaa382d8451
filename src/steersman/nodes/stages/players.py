"""Stage controllers for the simulated pods and nodes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.core.v1 import Node, Pod
from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.indexes import BY_NODE
from steersman.client.informer import Informers, Key, key_of
from steersman.client.resources import NODES, PODS
from steersman.nodes.simulated_node import SimulatedNode
from steersman.nodes.stages.functions import functions_of_node, functions_of_pod
from steersman.nodes.stages.player import StagePlayer
from steersman.nodes.stages.sprig.checks import by_chance
from steersman.nodes.stages.stage_set import Stages

_COMPONENT = "kwok_controller"
"""Source of the events, as in kwok."""


class StagePlayers:
    """Stage controllers of pods and nodes: `start`, then `await stop()`.

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
        self._pod_objects = informers.for_resource(PODS)
        self._node_objects = informers.for_resource(NODES)
        self._nodes = nodes
        self._pods: StagePlayer[Pod] | None = None
        self._of_nodes: StagePlayer[Node] | None = None
        recorder = events.recorder(_COMPONENT)
        chance = by_chance(stages.random)
        if stages.pods is not None:
            self._pods = StagePlayer(
                client,
                self._pod_objects,
                stages.pods,
                recorder,
                follows=lambda pod: self._is_reachable(pod.spec.node_name),
                functions=lambda pod: {**chance, **functions_of_pod(pod, nodes)},
            )
        if stages.nodes is not None:
            self._of_nodes = StagePlayer(
                client,
                self._node_objects,
                stages.nodes,
                recorder,
                follows=lambda node: self._is_reachable(node.metadata.name),
                functions=lambda node: {**chance, **functions_of_node(nodes[node.metadata.name])},
            )

    @property
    def rule_pods(self) -> bool:
        """True if stages replace the built-in behaviour of pods."""
        return self._pods is not None

    @property
    def rule_nodes(self) -> bool:
        """True if stages set the statuses of nodes."""
        return self._of_nodes is not None

    @property
    def idle(self) -> bool:
        """True if no step is due now; some may be due later."""
        return all(each.idle for each in (self._pods, self._of_nodes) if each is not None)

    def start(self) -> None:
        """Start to play stages for existing and changed objects."""
        if self._pods is not None:
            self._pods.start()
            self._pod_objects.on_change(self._pod_changed)
        if self._of_nodes is not None:
            self._of_nodes.start()
            self._node_objects.on_change(self._node_changed)

    async def stop(self) -> None:
        """Stop. Objects stay in their current stages."""
        for player in (self._pods, self._of_nodes):
            if player is not None:
                await player.stop()

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
        pod = new or old
        if self._pods is not None and pod is not None and pod.spec.node_name in self._nodes:
            self._pods.queue(key_of(pod))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if self._of_nodes is not None and node is not None and node.metadata.name in self._nodes:
            key: Key = "", node.metadata.name
            self._of_nodes.queue(key)
