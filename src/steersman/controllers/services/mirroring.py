"""Controller that mirrors Endpoints of Services without a selector as EndpointSlices.

Follows pkg/controller/endpointslicemirroring. Users or other controllers write such Endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.core.v1 import EndpointAddress, Endpoints, Service
from steersman.api.discovery.v1 import Endpoint, EndpointConditions, EndpointSlice
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.errors import ignoring, is_namespace_terminating, is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key, key_of
from steersman.client.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.services.addresses import canonical
from steersman.controllers.services.endpoints import LEADER
from steersman.controllers.services.packing import MANAGED_BY, SERVICE_NAME, services_of_slice
from steersman.controllers.services.ports import Ports, in_order, ports_of_slice
from steersman.controllers.services.subsets import MOST, AddressKey, Subset, group_of_subset, repack
from steersman.controllers.services.trigger_times import ANNOTATION
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.controllers.workloads.own_writes import OwnWrites
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater
from steersman.work.yielding import TimeSlice, time_sliced

MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_NOT_MIRRORED: Final = (ANNOTATION, "kubectl.kubernetes.io/last-applied-configuration")
_LONGEST_PREFIX: Final = 253

_SliceKey = tuple[str, Ports]
"""Family and ports of one EndpointSlice."""


_services_of: Final = partial(services_of_slice, MANAGER)


class Mirrored(Struct):
    """Endpoints by family and ports, from an Endpoints object, and counts of skipped addresses."""

    endpoints: dict[_SliceKey, dict[tuple[str, ...], Endpoint]] = field(default_factory=dict)
    invalid: int = 0
    skipped: int = 0
    """Number of skipped addresses, both invalid ones and those beyond MOST of a subset."""

    async def add(self, subset: Subset, addresses: Mapping[AddressKey, EndpointAddress]) -> None:
        """Add a subset, ready addresses first."""
        ports = in_order(subset.ports)
        for family in ("IPv4", "IPv6"):
            self.endpoints.setdefault((family, ports), {})
        added = 0
        time_slice = TimeSlice()
        in_subset = [(each, True) for each in subset.ready] + [(each, False) for each in subset.not_ready]
        for key, ready in in_subset:
            if added >= MOST:
                break
            await time_slice.pause_if_over()
            ready_endpoint = _endpoint(addresses[key], ready=ready)
            if ready_endpoint is None:
                self.invalid += 1
                continue
            family, endpoint = ready_endpoint
            self.endpoints[family, ports][_endpoint_key(endpoint)] = endpoint
            added += 1
        self.skipped += len(in_subset) - added


class EndpointSliceMirroringController(Controller[Key]):
    """Mirrors Endpoints. A key is the namespace and name of Endpoints, and of their Service."""

    name = "endpointslice-mirroring-controller"
    account = "endpointslicemirroring-controller"
    component = "endpoint-slice-mirroring-controller"
    retry_delay = 1.0

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._endpoints = self.informers.for_resource(ENDPOINTS)
        self._slices = self.informers.for_resource(ENDPOINT_SLICES)
        self._services = self.informers.for_resource(SERVICES)
        self._own_writes: OwnWrites[Key] = OwnWrites()
        """Written slices by namespace and name."""
        self._not_in_informer: dict[Key, set[str]] = {}
        """Names of created slices that the informer does not have yet, by the key of their Endpoints."""
        self._slices.add_index(MANAGER, _services_of)
        self._endpoints.on_change(self._endpoints_changed)
        self._slices.on_change(self._slice_changed)
        self._services.on_change(self._service_changed)

    def _endpoints_changed(self, old: Endpoints | None, new: Endpoints | None) -> None:
        if any(each is not None and is_mirrored(each) for each in (old, new)):
            self.queue.add(key_of(new or old))  # type: ignore[arg-type]

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        services = {service for each in (old, new) if each is not None for service in _services_of(each)}
        for each in services:
            namespace, _, name = each.partition("/")
            if new is None and old is not None:
                self._own_writes.forget(key_of(old))
            elif new is not None:
                self._not_in_informer.get((namespace, name), set()).discard(new.metadata.name)
            self.queue.add((namespace, name))

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        selectors = [bool(each.spec.selector) for each in (old, new) if each is not None]
        if (len(selectors) == 1 and not selectors[0]) or len(set(selectors)) == 2:
            self.queue.add(key_of(new or old))  # type: ignore[arg-type]

    async def sync(self, key: Key) -> None:
        endpoints, service = self._endpoints.get(*key), self._services.get(*key)
        slices = self._slices.indexed(MANAGER, f"{key[0]}/{key[1]}")
        if endpoints is None or not is_mirrored(endpoints) or service is None or service.spec.selector:
            self._not_in_informer.pop(key, None)
            for each in slices:
                await self._delete(each)
            return
        if self._not_in_informer.get(key) or any(self._own_writes.is_stale(key_of(each), each) for each in slices):
            return  # the change of a newer slice queues the key again
        mirrored = Mirrored()
        addresses: dict[AddressKey, EndpointAddress] = {}
        groups = [await group_of_subset(each, addresses) for each in endpoints.subsets]
        async for subset in time_sliced(repack(groups)):
            await mirrored.add(subset, addresses)
        self._record_events(endpoints, mirrored)
        await self._write(key, endpoints, mirrored, slices)

    def _record_events(self, endpoints: Endpoints, mirrored: Mirrored) -> None:
        about = reference(ENDPOINTS, endpoints)
        if mirrored.invalid:
            text = f"Skipped {mirrored.invalid} invalid IP addresses when mirroring to EndpointSlices"
            self.recorder.event(about, "Warning", "InvalidIPAddress", text)
        if mirrored.skipped > mirrored.invalid:
            text = (
                f"A max of {MOST} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{mirrored.skipped} addresses were skipped"
            )
            self.recorder.event(about, "Warning", "TooManyAddressesToMirror", text)

    async def _write(self, key: Key, endpoints: Endpoints, mirrored: Mirrored, slices: Iterable[EndpointSlice]) -> None:
        """Write the slices: reuse surplus slices for missing ones, create the other missing ones, delete the other
        surplus ones.
        """
        there: dict[_SliceKey, list[EndpointSlice]] = {}
        for each in slices:
            there.setdefault((each.address_type, ports_of_slice(each.ports)), []).append(each)
        create: list[EndpointSlice] = []
        update: list[EndpointSlice] = []
        for place, desired in mirrored.endpoints.items():
            if not desired:
                continue
            mirrors = there.get(place, [])
            there[place] = mirrors[1:]
            if not mirrors:
                create.append(_new_slice(endpoints, place, desired.values()))
            elif not _is_mirror_of(mirrors[0], endpoints, desired):
                update.append(_new_slice(endpoints, place, desired.values(), mirrors[0].metadata.name))
        delete = [each for slices in there.values() for each in slices]
        for new in list(create):
            old = next((each for each in delete if each.address_type == new.address_type), None)
            if old is not None:
                new.metadata.name = old.metadata.name
                create.remove(new)
                delete.remove(old)
                update.append(new)
        await self._apply(key, endpoints, create, update)
        for each in delete:
            await self._delete(each)

    async def _apply(
        self, key: Key, endpoints: Endpoints, create: list[EndpointSlice], update: list[EndpointSlice]
    ) -> None:
        name = f"{key[0]}/{key[1]}"
        for each in create if not endpoints.metadata.deletion_timestamp else ():
            try:
                written = await self.client.create(ENDPOINT_SLICES, each)
            except StatusError as error:
                if is_namespace_terminating(error):
                    return
                raise TryLater(f"failed to create EndpointSlice for Endpoints {name}: {error}") from error
            self._own_writes.record(key_of(written), written)
            if self._slices.get(*key_of(written)) is None:
                self._not_in_informer.setdefault(key, set()).add(written.metadata.name)
        for each in update:
            try:
                written = await self.client.update(ENDPOINT_SLICES, each)
            except StatusError as error:
                failed = f"failed to update {each.metadata.name} EndpointSlice for Endpoints {name}"
                raise TryLater(f"{failed}: {error}") from error
            self._own_writes.record(key_of(written), written)

    async def _delete(self, slice_: EndpointSlice) -> None:
        namespace, name = key_of(slice_)
        with ignoring(is_not_found):
            await self.client.delete(ENDPOINT_SLICES, name, namespace)


def is_mirrored(endpoints: Endpoints) -> bool:
    """Return True if Endpoints are to be mirrored, provided that their Service has no selector."""
    metadata = endpoints.metadata
    return metadata.labels.get(_SKIP) != "true" and LEADER not in metadata.annotations


def _endpoint(address: EndpointAddress, *, ready: bool) -> tuple[str, Endpoint] | None:
    """Return the family and endpoint of an address; None if it is invalid."""
    ip = canonical(address.ip)
    if ip is None:
        return None
    family, text = ip
    return family, Endpoint(
        addresses=[text],
        conditions=EndpointConditions(ready=ready),
        target_ref=address.target_ref,
        node_name=address.node_name,
        hostname=address.hostname or None,
    )


def _endpoint_key(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the parts of an endpoint that identify it."""
    target = endpoint.target_ref
    whose = (target.namespace, target.name) if target is not None else ("", "")
    return *(endpoint.addresses or ()), endpoint.hostname or "", *whose


def _annotations(endpoints: Endpoints) -> dict[str, str]:
    return {key: value for key, value in endpoints.metadata.annotations.items() if key not in _NOT_MIRRORED}


def _new_slice(endpoints: Endpoints, place: _SliceKey, desired: Iterable[Endpoint], name: str = "") -> EndpointSlice:
    metadata = endpoints.metadata
    prefix = f"{metadata.name}-"
    family, ports = place
    return EndpointSlice(
        metadata=ObjectMeta(
            name=name,
            namespace=metadata.namespace,
            owner_references=[new_controller_ref(ENDPOINTS, endpoints)],
            annotations=_annotations(endpoints),
            labels={**metadata.labels, SERVICE_NAME: metadata.name, MANAGED_BY: MANAGER},
            generate_name="" if name else prefix if len(prefix) <= _LONGEST_PREFIX else metadata.name,
        ),
        address_type=family,
        endpoints=list(desired)[:MOST],
        ports=[each.of_slice for each in ports] or None,
    )


def _is_mirror_of(slice_: EndpointSlice, endpoints: Endpoints, desired: Mapping[tuple[str, ...], Endpoint]) -> bool:
    """Return True if a slice mirrors the Endpoints already."""
    metadata = slice_.metadata
    labels = {key: value for key, value in metadata.labels.items() if key not in (SERVICE_NAME, MANAGED_BY)}
    there = {_endpoint_key(each): each for each in slice_.endpoints or ()}
    stale = any(
        each.kind == "Endpoints" and each.name == endpoints.metadata.name and each.uid != endpoints.metadata.uid
        for each in metadata.owner_references
    )
    return (
        not stale
        and labels == endpoints.metadata.labels
        and metadata.annotations == _annotations(endpoints)
        and there.keys() == desired.keys()
        and all(_without_target_version(there[key]) == _without_target_version(each) for key, each in desired.items())
    )


def _without_target_version(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint without the resourceVersion of its target."""
    target = endpoint.target_ref
    if target is None or not target.resource_version:
        return endpoint
    return msgspec.structs.replace(endpoint, target_ref=msgspec.structs.replace(target, resource_version=""))
