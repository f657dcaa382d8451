"""Hints that give each zone its share of endpoints, by the processors of its nodes (k8s.io/endpointslice
topologycache; the annotation `service.kubernetes.io/topology-mode: Auto`)."""

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
"""By how much more than its share an endpoint may be used."""
_EXCLUDED: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_MILLI: Final = 10**6


class Told(NamedTuple):
    """An event about the Service."""

    type: str
    reason: str
    message: str


class _Share(Struct, frozen=True):
    """How many endpoints a zone must and may have, and how many it should have."""

    least: int
    most: int
    desired: float


class _NoHints(Exception):
    """Hints cannot be given; the text says why."""


class ZoneShares(Struct):
    """The shares of zones in all processors, and which Services have been given hints by them."""

    shares: dict[str, float] = field(default_factory=dict)
    _given: dict[Key, dict[str, Counter[str]]] = field(default_factory=dict)
    """By Service and family, how many endpoints each zone has."""
    _told: set[Key] = field(default_factory=set)

    @property
    def has_services(self) -> bool:
        return bool(self._given)

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Counts the processors of ready nodes by zones; a node that does not tell makes that impossible."""
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
        """Services of which a zone has too few endpoints."""
        return [key for key, given in self._given.items() if any(map(self._is_overloaded, given.values()))]

    def _is_overloaded(self, given: Counter[str]) -> bool:
        if not given:
            return False
        least = {zone: math.ceil(given.total() * share / (1 + _OVERLOAD)) for zone, share in self.shares.items()}
        return not least or any(zone not in given or given[zone] < count for zone, count in least.items())

    def forget(self, key: Key, family: str) -> bool:
        """A Service has no hints by zones; whether it was told that it has."""
        given = self._given.get(key, {})
        given.pop(family, None)
        if not given:
            self._given.pop(key, None)
        told = key in self._told
        self._told.discard(key)
        return told

    def give(self, key: Key, family: str, changes: Changes, unchanged: list[EndpointSlice]) -> Iterator[Told]:
        """Puts hints into slices that are to be written, and writes others whose hints do not do; says what users are
        told."""
        everything = [*changes.create, *changes.update, *unchanged]
        try:
            allowed = self._allowed(sum(_ready(each) for each in everything))
            given = _spread(changes, unchanged, allowed)
        except _NoHints as error:
            self.forget(key, family)
            remove_hints(changes, unchanged)
            yield Told("Warning", "TopologyAwareHintsDisabled", f"{error}, addressType: {family}")
            return
        if key not in self._told:
            text = f"Topology Aware Hints has been enabled, addressType: {family}"
            yield Told("Normal", "TopologyAwareHintsEnabled", text)
        self._given.setdefault(key, {})[family] = given
        self._told.add(key)

    def _allowed(self, count: int) -> dict[str, _Share]:
        """What each zone may have of so many endpoints. Raises _NoHints."""
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
    """Whether a node says so."""
    return is_condition_true(node.status.conditions, "Ready")


def remove_hints(changes: Changes, unchanged: Iterable[EndpointSlice]) -> None:
    """Takes all hints away."""
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
    """Gives endpoints to their own zones, then those that a zone has too many of to others. How many each zone has
    then. Raises _NoHints."""
    given: Counter[str] = Counter()
    for each in unchanged:
        there = _given_in(each, given, allowed)
        if there is None:
            changes.update.append(changed_slice(each, list(each.endpoints or ())))
        else:
            given.update(there)
    open_ = [*changes.create, *changes.update]
    for slice_ in open_:
        for index, endpoint in _ready_in(slice_):
            if not endpoint.zone:
                raise _NoHints("One or more endpoints do not have a zone specified")
            given[endpoint.zone] += 1
            _put(slice_, index, endpoint, endpoint.zone)
    giving, receiving = _exchange(allowed, given)
    for slice_ in open_:
        for index, endpoint in _ready_in(slice_):
            zone = endpoint.zone or ""
            to = next(iter(receiving), None)
            if to is None or not giving[zone]:
                continue
            _put(slice_, index, endpoint, to)
            giving[zone] -= 1
            receiving[to] -= 1
            if not receiving[to]:
                del receiving[to]
            given[to] += 1
            given[zone] -= 1
    if not given:
        raise _NoHints("No hints allocated for zones")
    return given


def _exchange(allowed: Mapping[str, _Share], given: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """How many endpoints zones give to others, and how many these take."""
    more = {zone: given[zone] - share.desired for zone, share in allowed.items() if given[zone] > share.desired}
    fewer = {zone: share.desired - given[zone] for zone, share in allowed.items() if given[zone] < share.desired}
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


def _given_in(slice_: EndpointSlice, given: Counter[str], allowed: Mapping[str, _Share]) -> Counter[str] | None:
    """How many hints a slice has for each zone; None if it must be written, as they do not do."""
    found: Counter[str] = Counter()
    for _, endpoint in _ready_in(slice_):
        zones = endpoint.hints.for_zones if endpoint.hints is not None else ()
        if not zones or any(each.name not in allowed for each in zones):
            return None
        found.update(each.name for each in zones)
    return None if any(given[zone] + count > allowed[zone].most for zone, count in found.items()) else found


def _ready_in(slice_: EndpointSlice) -> Iterator[tuple[int, Endpoint]]:
    return ((index, each) for index, each in enumerate(slice_.endpoints or ()) if each.conditions.ready)


def _ready(slice_: EndpointSlice) -> int:
    return sum(bool(each.conditions.ready) for each in slice_.endpoints or ())


def _put(slice_: EndpointSlice, index: int, endpoint: Endpoint, zone: str) -> None:
    assert slice_.endpoints is not None
    slice_.endpoints[index] = _with_hints(endpoint, EndpointHints(for_zones=[ForZone(name=zone)]))


def _with_hints(endpoint: Endpoint, hints: EndpointHints | None) -> Endpoint:
    return endpoint if endpoint.hints == hints else msgspec.structs.replace(endpoint, hints=hints)
