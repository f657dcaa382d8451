"""Rate limits for NoExecute taints by zone, which depend on the zone's health (pkg/controller/nodelifecycle
`scheduler`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from steersman.api.core.v1 import Node
from steersman.work import simulated_time

RATE: Final = 0.1
"""Tainted nodes per second of a healthy zone (`--node-eviction-rate`)."""
SECONDARY_RATE: Final = 0.01
"""Tainted nodes per second of a large, partially unhealthy zone (`--secondary-node-eviction-rate`)."""
LARGE: Final = 50
UNHEALTHY: Final = 0.55

_REGION: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def zone_of(node: Node) -> str:
    """Return the zone of a node by its labels, "" for a node without zone labels."""
    labels = node.metadata.labels
    region, zone = (next((labels[name] for name in names if name in labels), "") for names in (_REGION, _ZONE))
    return f"{region}:\0:{zone}" if region or zone else ""


class _Zone(Struct):
    ready: dict[str, bool] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    granted: set[str] = field(default_factory=set)
    free_at: float = 0.0
    """Time from which the next node may be tainted, on the event loop's clock."""

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
    """Grants nodes the permission to be tainted. `wake` is called with the name of a node that gets it."""

    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._zones: dict[str, _Zone] = {}
        self._zone_by_node: dict[str, str] = {}

    def update(self, node: Node, ready: bool) -> None:
        """Add or update a node and its readiness."""
        name, zone = node.metadata.name, zone_of(node)
        if self._zone_by_node.get(name, zone) != zone:
            self.remove(name)
        was_all = self.all_disrupted
        self._zone_by_node[name] = zone
        self._zones.setdefault(zone, _Zone()).ready[name] = ready
        if was_all != self.all_disrupted:
            for each in self._zone_by_node:
                self._wake(each)
        self._schedule(self._zones[zone])

    def remove(self, name: str) -> None:
        """Remove a deleted node."""
        self.cancel(name)
        zone = self._zone_by_node.pop(name, None)
        if zone is not None:
            self._zones[zone].ready.pop(name, None)
            if not self._zones[zone].ready:
                del self._zones[zone]

    @property
    def all_disrupted(self) -> bool:
        """Return True if no node of any zone is ready: the fault is then more likely in the control plane."""
        return bool(self._zones) and all(each.is_disrupted for each in self._zones.values())

    def may_taint(self, name: str) -> bool:
        """Return True if the node has the permission, and use it up. Otherwise the node waits for it."""
        zone = self._zones[self._zone_by_node[name]]
        if name in zone.granted:
            zone.granted.discard(name)
            return True
        if name not in zone.waiting:
            zone.waiting[name] = None
            self._schedule(zone)
        return False

    def cancel(self, name: str) -> None:
        """Withdraw the permission of a node, or its wait for it."""
        zone = self._zones.get(self._zone_by_node.get(name, "\0"))
        if zone is not None:
            zone.waiting.pop(name, None)
            zone.granted.discard(name)

    def _schedule(self, zone: _Zone) -> None:
        rate = zone.rate
        if not zone.waiting or rate == 0:
            return
        if zone.free_at <= simulated_time.time():
            name = next(iter(zone.waiting))
            del zone.waiting[name]
            zone.granted.add(name)
            zone.free_at = simulated_time.time() + 1 / rate
            self._wake(name)
        if zone.waiting:
            simulated_time.call_at(zone.free_at, self._schedule, zone)
