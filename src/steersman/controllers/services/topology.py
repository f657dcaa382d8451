"""Topology hints that give each zone a share of the endpoints by its share of CPUs.

Follows k8s.io/endpointslice topologycache. A Service opts in by `service.kubernetes.io/topology-mode: Auto`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from steersman.api.core.v1 import Node
from steersman.api.discovery.v1 import Endpoint, EndpointHints, EndpointSlice, ForZone
from steersman.client.informer import Key
from steersman.controllers.services.endpoint import ZONE
from steersman.controllers.services.packing import Changes, changed_slice
from steersman.machinery.values.conditions import is_condition_true
from steersman.machinery.values.quantity import nanos

_OVERLOAD: Final = 0.2
"""Allowed excess of an endpoint's load over its share."""
_EXCLUDED: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_MILLI: Final = 10**6


class ServiceEvent(NamedTuple):
    """An event about a Service."""

    type: str
    reason: str
    message: str


class _Share(Struct, frozen=True):
    """Minimum, maximum and desired number of endpoints of a zone."""

    least: int
    most: int
    desired: float


class _NoHints(Exception):
    """Hints cannot be set. The text is that of the event."""


class ZoneShares(Struct):
    """The zones' shares of all CPUs, and the Services with hints by these shares."""

    shares: dict[str, float] = field(default_factory=dict)
    _hints: dict[Key, dict[str, Counter[str]]] = field(default_factory=dict)
    """Number of endpoints of each zone, by Service and family."""
    _reported: set[Key] = field(default_factory=set)

    @property
    def has_services(self) -> bool:
        """Return True if any Service has hints."""
        return bool(self._hints)

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Set the shares from the CPUs of ready nodes. If a node lacks its zone or CPUs, there are no shares."""
        milli: Counter[str] = Counter()
        for node in nodes:
            labels = node.metadata.labels
            if any(each in labels for each in _EXCLUDED) or not is_node_ready(node):
                continue
            zone, cpu = labels.get(ZONE), nanos(node.status.allocatable.get("cpu", "0"))
            if not zone or not cpu:
                milli.clear()
                break
            milli[zone] += -(-cpu // _MILLI)
        total = milli.total()
        self.shares = {zone: count / total for zone, count in milli.items()} if len(milli) > 1 else {}

    def overloaded(self) -> list[Key]:
        """Return the Services with too few endpoints for a zone."""
        return [key for key, hints in self._hints.items() if any(map(self._is_overloaded, hints.values()))]

    def _is_overloaded(self, hints: Counter[str]) -> bool:
        if not hints:
            return False
        least = {zone: math.ceil(hints.total() * share / (1 + _OVERLOAD)) for zone, share in self.shares.items()}
        return not least or any(zone not in hints or hints[zone] < count for zone, count in least.items())

    def forget(self, key: Key, family: str) -> bool:
        """Remove the hints of a Service. Return True if an event has reported that it has hints."""
        hints = self._hints.get(key, {})
        hints.pop(family, None)
        if not hints:
            self._hints.pop(key, None)
        was_reported = key in self._reported
        self._reported.discard(key)
        return was_reported

    def set_hints(
        self, key: Key, family: str, changes: Changes, unchanged: list[EndpointSlice]
    ) -> Iterator[ServiceEvent]:
        """Set hints in the slices to be written, and add unchanged slices with unsuitable hints to them. Yield events."""
        everything = [*changes.create, *changes.update, *unchanged]
        try:
            allowed = self._allowed(sum(_ready(each) for each in everything))
            hints = _spread(changes, unchanged, allowed)
        except _NoHints as error:
            self.forget(key, family)
            remove_hints(changes, unchanged)
            yield ServiceEvent("Warning", "TopologyAwareHintsDisabled", f"{error}, addressType: {family}")
            return
        if key not in self._reported:
            text = f"Topology Aware Hints has been enabled, addressType: {family}"
            yield ServiceEvent("Normal", "TopologyAwareHintsEnabled", text)
        self._hints.setdefault(key, {})[family] = hints
        self._reported.add(key)

    def _allowed(self, count: int) -> dict[str, _Share]:
        """Return the numbers of endpoints that the zones may have, of `count` in all. Raises _NoHints."""
        if not self.shares:
            raise _NoHints("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes")
        numbers = f"({count} endpoints, {len(self.shares)} zones)"
        if len(self.shares) > count:
            raise _NoHints(f"Insufficient number of endpoints {numbers}")
        desired = {zone: share * count for zone, share in self.shares.items()}
        least = {zone: math.ceil(each * (1 / (1 + _OVERLOAD))) for zone, each in desired.items()}
        spare = count - sum(least.values())
        if spare < 0:
            text = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
            raise _NoHints(f"{text} {numbers}")
        return {zone: _Share(least[zone], least[zone] + spare, max(desired[zone], least[zone])) for zone in desired}


def is_node_ready(node: Node) -> bool:
    """Return True if a node is ready."""
    return is_condition_true(node.status.conditions, "Ready")


def remove_hints(changes: Changes, unchanged: Iterable[EndpointSlice]) -> None:
    """Remove the hints of all slices."""
    for each in (*changes.create, *changes.update):
        each.endpoints = [_with_hints(endpoint, None) for endpoint in each.endpoints or ()]
    written = {each.metadata.name for each in changes.update}
    for each in unchanged:
        if each.metadata.name in written:
            continue
        if any(endpoint.hints is not None for endpoint in each.endpoints or ()):
            endpoints = [_with_hints(endpoint, None) for endpoint in each.endpoints or ()]
            changes.update.append(changed_slice(each, endpoints))


def _spread(changes: Changes, unchanged: list[EndpointSlice], allowed: Mapping[str, _Share]) -> Counter[str]:
    """Assign endpoints to their own zones, then surplus ones to other zones. Return the number of each zone.

    Raises _NoHints.
    """
    hints: Counter[str] = Counter()
    for each in unchanged:
        there = _hints_in(each, hints, allowed)
        if there is None:
            changes.update.append(changed_slice(each, list(each.endpoints or ())))
        else:
            hints.update(there)
    open_ = [*changes.create, *changes.update]
    for slice_ in open_:
        for index, endpoint in _ready_in(slice_):
            if not endpoint.zone:
                raise _NoHints("One or more endpoints do not have a zone specified")
            hints[endpoint.zone] += 1
            _set_hint(slice_, index, endpoint, endpoint.zone)
    giving, receiving = _exchange(allowed, hints)
    for slice_ in open_:
        for index, endpoint in _ready_in(slice_):
            zone = endpoint.zone or ""
            to = next(iter(receiving), None)
            if to is None or not giving[zone]:
                continue
            _set_hint(slice_, index, endpoint, to)
            giving[zone] -= 1
            receiving[to] -= 1
            if not receiving[to]:
                del receiving[to]
            hints[to] += 1
            hints[zone] -= 1
    if not hints:
        raise _NoHints("No hints allocated for zones")
    return hints


def _exchange(allowed: Mapping[str, _Share], hints: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the numbers of endpoints that zones give away and receive."""
    more = {zone: hints[zone] - share.desired for zone, share in allowed.items() if hints[zone] > share.desired}
    fewer = {zone: share.desired - hints[zone] for zone, share in allowed.items() if hints[zone] < share.desired}
    giving: Counter[str] = Counter()
    receiving: Counter[str] = Counter()
    while more and fewer:
        source, target = max(more, key=lambda zone: more[zone]), max(fewer, key=lambda zone: fewer[zone])
        surplus, need = more[source], fewer[target]
        if (surplus < 1 and need < 1) or surplus < 0.5 or need < 0.5:
            break
        giving[source] += 1
        more[source] -= 1
        receiving[target] += 1
        fewer[target] -= 1
    return giving, receiving


def _hints_in(slice_: EndpointSlice, hints: Counter[str], allowed: Mapping[str, _Share]) -> Counter[str] | None:
    """Return the number of hints of a slice by zone; None if the slice must be rewritten."""
    counts: Counter[str] = Counter()
    for _, endpoint in _ready_in(slice_):
        zones = endpoint.hints.for_zones if endpoint.hints is not None else ()
        if not zones or any(each.name not in allowed for each in zones):
            return None
        counts.update(each.name for each in zones)
    return None if any(hints[zone] + count > allowed[zone].most for zone, count in counts.items()) else counts


def _ready_in(slice_: EndpointSlice) -> Iterator[tuple[int, Endpoint]]:
    return ((index, each) for index, each in enumerate(slice_.endpoints or ()) if each.conditions.ready)


def _ready(slice_: EndpointSlice) -> int:
    return sum(bool(each.conditions.ready) for each in slice_.endpoints or ())


def _set_hint(slice_: EndpointSlice, index: int, endpoint: Endpoint, zone: str) -> None:
    assert slice_.endpoints is not None
    slice_.endpoints[index] = _with_hints(endpoint, EndpointHints(for_zones=[ForZone(name=zone)]))


def _with_hints(endpoint: Endpoint, hints: EndpointHints | None) -> Endpoint:
    return endpoint if endpoint.hints == hints else msgspec.structs.replace(endpoint, hints=hints)
