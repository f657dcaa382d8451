"""The scheduler's simulation of a world: one for each world, shared by all explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from steersman.client.api_resource import APIResource
from steersman.client.resources import NODES, PODS
from steersman.explain.world import Unreadable, World
from steersman.scheduler.inquiry.simulation import RESOURCES, Simulation

_NEEDED: Final = (NODES, PODS)


class WorldSimulation(Struct, frozen=True):
    """Simulation of a world."""

    simulation: Simulation
    unread: tuple[str, ...]
    """Resources that could not be read, and count as if they had no objects."""


_simulations: WeakKeyDictionary[World, WorldSimulation] = WeakKeyDictionary()


async def simulation_of(world: World) -> WorldSimulation:
    """Return the simulation of a world. Raises Unreadable if nodes or pods cannot be read, and Unreachable."""
    found = _simulations.get(world)
    if found is None:
        found = _simulations[world] = await new_simulation(world)
    return found


async def new_simulation(world: World) -> WorldSimulation:
    """Return a new simulation of a world, which the caller may change. Raises as `simulation_of` does."""
    objects: dict[APIResource[Any], Sequence[Any]] = {}
    unread: list[str] = []
    for resource in RESOURCES:
        try:
            objects[resource] = await world.list(resource)
        except Unreadable:
            if resource in _NEEDED:
                raise
            unread.append(str(resource.group_resource))
    return WorldSimulation(Simulation(objects), tuple(unread))
