"""How many nodes of a zone may be emptied, by how many of it are well (pkg/controller/nodelifecycle `scheduler`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from steersman.api.core.v1 import Node

RATE: Final = 0.1
"""Nodes a second (`--node-eviction-rate`)."""
SECONDARY_RATE: Final = 0.01
"""The same in a large zone in which many are not well (`--secondary-node-eviction-rate`)."""
LARGE: Final = 50
UNHEALTHY: Final = 0.55

_REGION: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def zone_of(node: Node) -> str:
    """The zone of a node by its labels; those without are in one."""
    labels = node.metadata.labels
    region, zone = (next((labels[name] for name in names if name in labels), "") for names in (_REGION, _ZONE))
    return f"{region}:\0:{zone}" if region or zone else ""


class _Zone(Struct):
    ready: dict[str, bool] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    granted: set[str] = field(default_factory=set)
    free_at: float = 0.0
    """When the next node may be emptied."""

    @property
    def rate(self) -> float:
        unwell = sum(1 for ready in self.ready.values() if not ready)
        well = len(self.ready) - unwell
        if well and unwell > 2 and unwell / len(self.ready) >= UNHEALTHY:
            return SECONDARY_RATE if len(self.ready) > LARGE else 0.0
        return RATE

    @property
    def is_disrupted(self) -> bool:
        return bool(self.ready) and not any(self.ready.values())


class Zones:
    """Nodes wait for their turn; `wake` is called with the name of one whose turn has come."""

    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._zones: dict[str, _Zone] = {}
        self._of: dict[str, str] = {}

    def put(self, node: Node, ready: bool) -> None:
        """Knows a node, and whether it is well."""
        name, zone = node.metadata.name, zone_of(node)
        if self._of.get(name, zone) != zone:
            self.forget(name)
        was_all = self.all_disrupted
        self._of[name] = zone
        self._zones.setdefault(zone, _Zone()).ready[name] = ready
        if was_all != self.all_disrupted:
            for each in self._of:
                self._wake(each)
        self._schedule(self._zones[zone])

    def forget(self, name: str) -> None:
        """A node is no more."""
        self.cancel(name)
        zone = self._of.pop(name, None)
        if zone is not None:
            self._zones[zone].ready.pop(name, None)
            if not self._zones[zone].ready:
                del self._zones[zone]

    @property
    def all_disrupted(self) -> bool:
        """Whether no node is well anywhere: then it is rather this side that is not."""
        return bool(self._zones) and all(each.is_disrupted for each in self._zones.values())

    def may_taint(self, name: str) -> bool:
        """Whether it is this node's turn; else it waits for it."""
        zone = self._zones[self._of[name]]
        if name in zone.granted:
            zone.granted.discard(name)
            return True
        if name not in zone.waiting:
            zone.waiting[name] = None
            self._schedule(zone)
        return False

    def cancel(self, name: str) -> None:
        """A node does not wait any more."""
        zone = self._zones.get(self._of.get(name, "\0"))
        if zone is not None:
            zone.waiting.pop(name, None)
            zone.granted.discard(name)

    def _schedule(self, zone: _Zone) -> None:
        rate = zone.rate
        if not zone.waiting or rate == 0:
            return
        loop = asyncio.get_running_loop()
        if zone.free_at <= loop.time():
            name = next(iter(zone.waiting))
            del zone.waiting[name]
            zone.granted.add(name)
            zone.free_at = loop.time() + 1 / rate
            self._wake(name)
        if zone.waiting:
            loop.call_at(zone.free_at, self._schedule, zone)
