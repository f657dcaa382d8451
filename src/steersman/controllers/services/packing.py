"""Packing of endpoints into EndpointSlices with few writes and at most 100 endpoints each.

Follows k8s.io/endpointslice Reconciler. The cost of a change depends on the number of changed slices, not on the number
of endpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.core.v1 import Service
from steersman.api.discovery.v1 import Endpoint, EndpointSlice
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.resources import SERVICES
from steersman.controllers.services.addresses import has_cluster_ip
from steersman.controllers.services.endpoint import DesiredEndpoint
from steersman.controllers.services.ports import Ports, ports_of_slice
from steersman.controllers.services.trigger_times import with_trigger_time
from steersman.controllers.workloads.controller_ref import new_controller_ref

MANAGER: Final = "endpointslice-controller.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
HEADLESS: Final = "service.kubernetes.io/headless"
MOST: Final = 100
"""Most endpoints of a slice (`--max-endpoints-per-slice`)."""
_RESERVED: Final = (SERVICE_NAME, MANAGED_BY, HEADLESS)


class Changes(Struct):
    """Slices of one family to create, update and delete."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[EndpointSlice] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)


class Packing:
    """Slices of one family of a Service as they are on the server, and the endpoints that they should have."""

    def __init__(self, family: str) -> None:
        self.family: Final = family
        self.slices: dict[str, EndpointSlice] = {}
        self._ports: dict[str, Ports] = {}
        self._desired: dict[str, DesiredEndpoint] = {}
        self._slice_by_pod: dict[str, str] = {}
        """Name of the slice that has a pod, by pod."""
        self._missing: dict[str, None] = {}
        """Pods that should be in a slice but are in none."""
        self._port_counts: Counter[Ports] = Counter()
        self._dirty: set[str] = set()
        """Names of slices whose endpoints differ from the desired ones."""
        self.ignores_hints = False

    def ignore_hints(self, ignored: bool) -> None:
        """Set if hints are ignored, because the caller sets them after `plan`."""
        if ignored != self.ignores_hints:
            self.ignores_hints = ignored
            self._dirty.update(self.slices)

    def is_dirty(self, name: str) -> bool:
        """Return True if a slice differs from its desired state."""
        return name in self._dirty

    def set_desired(self, pod: str, desired: DesiredEndpoint | None) -> None:
        """Set the desired endpoint of a pod; None removes the pod."""
        old = self._desired.get(pod)
        if old == desired:
            return
        if old is not None:
            self._port_counts[old.ports] -= 1
            if not self._port_counts[old.ports]:
                del self._port_counts[old.ports]
            del self._desired[pod]
        if desired is not None:
            self._port_counts[desired.ports] += 1
            self._desired[pod] = desired
        self._missing.pop(pod, None)
        place = self._slice_by_pod.get(pod)
        if place is not None:
            self._dirty.add(place)
            if desired is None or desired.endpoint is None or desired.ports != self._ports[place]:
                del self._slice_by_pod[pod]
                place = None
        if place is None and desired is not None and desired.endpoint is not None:
            self._missing[pod] = None

    def put_slice(self, slice_: EndpointSlice) -> None:
        """Record a slice as it is on the server now."""
        name = slice_.metadata.name
        before = self.slices.get(name)
        self.slices[name] = slice_
        ports = self._ports[name] = ports_of_slice(slice_.ports)
        self._dirty.discard(name)
        there: set[str] = set()
        for endpoint in slice_.endpoints or ():
            pod = pod_of(endpoint)
            desired = self._desired.get(pod)
            if (
                pod in there
                or desired is None
                or desired.endpoint is None
                or desired.ports != ports
                or self._slice_by_pod.get(pod, name) != name
            ):
                self._dirty.add(name)  # an endpoint of another Service's pod, or of a pod that is in another slice
                continue
            there.add(pod)
            self._slice_by_pod[pod] = name
            self._missing.pop(pod, None)
            if not self._is_equal(desired.endpoint, endpoint):
                self._dirty.add(name)
        self._mark_missing(before, name, there)

    def remove_slice(self, name: str) -> None:
        """Remove a deleted slice."""
        before = self.slices.pop(name, None)
        self._ports.pop(name, None)
        self._dirty.discard(name)
        self._mark_missing(before, name, set())

    def _mark_missing(self, before: EndpointSlice | None, name: str, there: set[str]) -> None:
        """Mark the pods that were in a slice before and are not in `there` as missing."""
        for endpoint in (before.endpoints if before is not None else None) or ():
            pod = pod_of(endpoint)
            if pod not in there and self._slice_by_pod.get(pod) == name:
                del self._slice_by_pod[pod]
                desired = self._desired.get(pod)
                if desired is not None and desired.endpoint is not None:
                    self._missing[pod] = None
                    if name in self.slices:
                        self._dirty.add(name)

    def plan(self, service: Service) -> Changes:
        """Return the writes that lead to the desired state."""
        changes = Changes()
        labels = slice_labels(service)
        own_labels = _unreserved_labels(labels)
        updated: dict[Ports, list[EndpointSlice]] = {}
        unchanged: dict[Ports, list[EndpointSlice]] = {}
        for name, slice_ in self.slices.items():
            ports = self._ports[name]
            if not is_owned(slice_, service) or ports not in self._port_counts:
                changes.delete.append(slice_)
                continue
            endpoints = self._remaining_endpoints(name, slice_) if name in self._dirty else None
            if endpoints == []:
                changes.delete.append(slice_)
            elif endpoints is not None or _unreserved_labels(slice_.metadata.labels) != own_labels:
                remaining = list(slice_.endpoints or ()) if endpoints is None else endpoints
                updated.setdefault(ports, []).append(changed_slice(slice_, remaining, labels))
            else:
                self._dirty.discard(name)
                unchanged.setdefault(ports, []).append(slice_)
        missing: dict[Ports, list[Endpoint]] = {}
        for pod in self._missing:
            desired = self._desired[pod]
            assert desired.endpoint is not None
            missing.setdefault(desired.ports, []).append(desired.endpoint)
        for ports, endpoints in missing.items():
            self._place_missing(
                service, ports, endpoints, updated.setdefault(ports, []), unchanged.get(ports, []), changes
            )
        changes.update = [each for slices in updated.values() for each in slices]
        self._keep_placeholder(service, changes)
        return changes

    def _remaining_endpoints(self, name: str, slice_: EndpointSlice) -> list[Endpoint] | None:
        """Return the endpoints that stay in a slice, in their desired form; None if nothing changes."""
        remaining: list[Endpoint] = []
        seen: set[str] = set()
        changed = False
        for endpoint in slice_.endpoints or ():
            pod = pod_of(endpoint)
            desired = self._desired.get(pod)
            if pod in self._missing and desired is not None and desired.ports == self._ports[name]:
                self._slice_by_pod[pod] = name  # the slice was recorded before the pod
                del self._missing[pod]
            if self._slice_by_pod.get(pod) != name or desired is None or desired.endpoint is None or pod in seen:
                changed = True
                continue
            seen.add(pod)
            remaining.append(desired.endpoint)
            changed = changed or not self._is_equal(desired.endpoint, endpoint)
        return remaining if changed else None

    def _place_missing(
        self,
        service: Service,
        ports: Ports,
        missing: list[Endpoint],
        updated: list[EndpointSlice],
        unchanged: list[EndpointSlice],
        changes: Changes,
    ) -> None:
        """Add missing endpoints to slices: first to updated ones (fullest first), then to an unchanged one with room
        for all the rest, then to new slices.
        """
        rest = missing[::-1]
        for slice_ in sorted(updated, key=_length, reverse=True):
            _fill(slice_, rest)
        while rest:
            room = _fullest_with_room(unchanged, len(rest)) if len(rest) < MOST else None
            if room is None:
                slice_ = new_slice(service, self.family, ports)
                changes.create.append(slice_)
            else:
                slice_ = changed_slice(room, list(room.endpoints or ()), slice_labels(service))
                updated.append(slice_)
            _fill(slice_, rest)

    def _keep_placeholder(self, service: Service, changes: Changes) -> None:
        """Keep an empty slice for a Service without endpoints."""
        if len(self.slices) != len(changes.delete) or changes.create:
            return
        placeholder = new_slice(service, self.family, ())
        if len(changes.delete) == 1:
            there = changes.delete[0]
            if not there.endpoints and not there.ports and there.metadata.labels == placeholder.metadata.labels:
                changes.delete.clear()
                self._dirty.discard(there.metadata.name)
                return
        changes.create.append(placeholder)

    def _is_equal(self, one: Endpoint, other: Endpoint) -> bool:
        if one == other:
            return True
        return self.ignores_hints and one == msgspec.structs.replace(other, hints=one.hints)


def pod_of(endpoint: Endpoint) -> str:
    """Return the name of an endpoint's pod, "" if its target is no pod."""
    target = endpoint.target_ref
    return target.name if target is not None and target.kind == "Pod" else ""


def slice_labels(service: Service) -> dict[str, str]:
    """Return the labels of a Service's slices: those of the Service, its name, and the manager."""
    labels = _unreserved_labels(service.metadata.labels)
    if not has_cluster_ip(service):
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: service.metadata.name, MANAGED_BY: MANAGER}


def services_of_slice(manager: str, slice_: EndpointSlice) -> Iterable[str]:
    """Return the Service ("NAMESPACE/NAME") of a slice that the manager manages, () for any other slice."""
    labels = slice_.metadata.labels
    if labels.get(MANAGED_BY) != manager or not labels.get(SERVICE_NAME):
        return ()
    return (f"{slice_.metadata.namespace}/{labels[SERVICE_NAME]}",)


def new_slice(service: Service, family: str, ports: Ports) -> EndpointSlice:
    """Return a new slice without endpoints."""
    metadata = service.metadata
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{metadata.name}-",
            namespace=metadata.namespace,
            labels=slice_labels(service),
            owner_references=[new_controller_ref(SERVICES, service)],
        ),
        address_type=family,
        endpoints=[],
        ports=[each.of_slice for each in ports] or None,
    )


def is_owned(slice_: EndpointSlice, service: Service) -> bool:
    """Return True if the slice's owner is this Service, and not a deleted one of the same name."""
    return any(
        each.uid == service.metadata.uid and each.kind == "Service" and each.api_version == "v1"
        for each in slice_.metadata.owner_references
    )


def prepared(slice_: EndpointSlice, time: str) -> EndpointSlice:
    """Prepare a slice for a write: set the trigger time, and replace an empty list by None. Return the slice."""
    slice_.metadata.annotations = with_trigger_time(slice_.metadata.annotations, time)
    slice_.endpoints = slice_.endpoints or None
    return slice_


def recycle(changes: Changes, service: Service) -> None:
    """Turn pairs of a create and a delete into updates."""
    remaining: list[EndpointSlice] = []
    for old in changes.delete:
        if changes.create and is_owned(old, service):
            new = changes.create.pop()
            new.metadata.name = old.metadata.name
            changes.update.append(new)
        else:
            remaining.append(old)
    changes.delete = remaining


def _unreserved_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in _RESERVED}


def _length(slice_: EndpointSlice) -> int:
    return len(slice_.endpoints or ())


def changed_slice(
    slice_: EndpointSlice, endpoints: list[Endpoint], labels: dict[str, str] | None = None
) -> EndpointSlice:
    """Return a copy of a slice with other endpoints, and with other labels if they are given."""
    replace = msgspec.structs.replace
    labels = slice_.metadata.labels if labels is None else labels
    return replace(slice_, metadata=replace(slice_.metadata, labels=labels), endpoints=endpoints)


def _fill(slice_: EndpointSlice, rest: list[Endpoint]) -> None:
    """Move endpoints from the end of `rest` into a slice until it is full."""
    endpoints = slice_.endpoints
    assert endpoints is not None
    while rest and len(endpoints) < MOST:
        endpoints.append(rest.pop())


def _fullest_with_room(slices: Iterable[EndpointSlice], count: int) -> EndpointSlice | None:
    """Return the fullest slice that has room for `count` more endpoints, None if no slice has."""
    fitting = [each for each in slices if _length(each) + count <= MOST]
    return max(fitting, key=_length, default=None)
