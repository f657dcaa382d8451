"""Scenarios of nodes: pod addresses, and the lifecycle by heartbeats."""

from __future__ import annotations

from tools.controllers.world import World


def numbered(world: World) -> None:
    world.also("Node")
    for name in ("a", "b"):
        world.add_node(name)
    world.snapshot("given")
    world.delete("Node", "a")
    world.nodes.remove("a")
    world.add_node("c")
    world.snapshot("another")


SCENARIOS = {"nodes_numbered": numbered}
