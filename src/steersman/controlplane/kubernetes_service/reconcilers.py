"""Reconcilers of the endpoints of the Service `kubernetes`: `--endpoint-reconciler-type`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from steersman.api.core.v1 import EndpointPort, Endpoints, EndpointSubset
from steersman.api.discovery import v1 as discovery
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.initial_objects import ObjectsOf, ensure
from steersman.controlplane.kubernetes_service.endpoints import (
    SKIP_MIRROR,
    Subsets,
    counting,
    leading_to,
    slice_of,
    without,
)
from steersman.controlplane.kubernetes_service.leases import ServerLeases
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.errors.status import StatusError
from steersman.rest.context import loopback
from steersman.store.storage_errors import available, committed

NAMESPACE: Final = "default"
NAME: Final = "kubernetes"

_SLICE_LABELS: Final = {"kubernetes.io/service-name": NAME}

Change = Callable[[Sequence[EndpointSubset]], Subsets]


class EndpointReconciler(Protocol):
    """Adds this server to the endpoints and removes it. Raises StatusError, and ValueError for malformed leases of
    others.
    """

    async def reconcile(self, address: str, port: int, *, at_start: bool) -> bool:
        """Make the service lead to this server and to running servers only; return True if this is the only one.

        With `at_start`, the only server also sets the port; otherwise an existing port stays.
        """
        ...

    async def remove(self, address: str, port: int) -> None:
        """Make the service no longer lead to this server, which is stopping."""
        ...


class LeaseReconciler:
    """Reconciler by leases: the service leads to every server that has renewed its lease lately."""

    def __init__(self, leases: ServerLeases, objects: ObjectsOf) -> None:
        self._leases = leases
        self._objects = objects

    async def reconcile(self, address: str, port: int, *, at_start: bool) -> bool:
        """Renew this server's lease, then write the addresses of all leases. Raises ValueError if storage lists none."""
        await committed(self._leases.renew(address))
        running = await available(self._leases.addresses())
        if not running:
            raise ValueError(
                "no API server IP addresses were listed in storage, refusing to erase all endpoints for the "
                "kubernetes Service"
            )
        alone = running == [address]
        await _write(self._objects, lambda old: leading_to(old, running, _port(port), sets_port=at_start and alone))
        return alone

    async def remove(self, address: str, port: int) -> None:
        """Delete this server's lease, then write the addresses of the others."""
        await committed(self._leases.remove(address))
        running = await available(self._leases.addresses())
        await _write(self._objects, lambda old: leading_to(old, running, _port(port), sets_port=False))


class CountReconciler:
    """Reconciler by count: the service leads to at most `count` servers."""

    def __init__(self, count: int, objects: ObjectsOf) -> None:
        self._count = count
        self._objects = objects

    async def reconcile(self, address: str, port: int, *, at_start: bool) -> bool:
        """Add this server's address, and remove surplus addresses above the configured number of servers."""
        alone = self._count == 1
        await _write(
            self._objects,
            lambda old: counting(old, address, self._count, _port(port), sets_port=at_start and alone),
        )
        return alone

    async def remove(self, address: str, port: int) -> None:
        """Remove this server's address."""
        await _write(self._objects, lambda old: without(old, address))


class NoReconciler:
    """No reconciler: the endpoints are maintained elsewhere."""

    async def reconcile(self, address: str, port: int, *, at_start: bool) -> bool:
        """Do nothing; return False."""
        return False

    async def remove(self, address: str, port: int) -> None:
        """Do nothing."""


def _port(number: int) -> EndpointPort:
    return EndpointPort(name="https", port=number, protocol="TCP")


async def _write(objects: ObjectsOf, change: Change) -> None:
    """Write the subsets that `change` returns for the present ones, and the EndpointSlice for them. Raises
    StatusError.
    """
    endpoints = objects("", "endpoints")
    there: Endpoints | None = await endpoints.get_cached(NAMESPACE, NAME)
    if there is None:
        labels = {SKIP_MIRROR: "true"}
        made = Endpoints(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels=labels), subsets=change(()))
        if await ensure(endpoints, made):
            await _write_slice(objects("discovery.k8s.io", "endpointslices"), made.subsets)
            return
    elif there.metadata.labels.get(SKIP_MIRROR) == "true" and change(there.subsets) == there.subsets:
        await _write_slice(objects("discovery.k8s.io", "endpointslices"), there.subsets)
        return

    def changed(old: Endpoints | None) -> Endpoints:
        obj = Endpoints(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE)) if old is None else old
        obj.metadata.labels[SKIP_MIRROR] = "true"
        obj.subsets = change(obj.subsets)
        return obj

    written: Endpoints = await endpoints.update(loopback(NAMESPACE, NAME), NAME, changed)
    await _write_slice(objects("discovery.k8s.io", "endpointslices"), written.subsets)


async def _write_slice(slices: StoreObjects, subsets: Sequence[EndpointSubset]) -> None:
    desired = slice_of(subsets)
    desired.metadata = ObjectMeta(name=NAME, namespace=NAMESPACE, labels=dict(_SLICE_LABELS))
    there: discovery.EndpointSlice | None = await slices.get_cached(NAMESPACE, NAME)
    ctx = loopback(NAMESPACE, NAME)
    if there is not None and there.address_type != desired.address_type:  # the address type is immutable
        try:
            await slices.delete(ctx, NAME)
        except StatusError as error:
            if error.code != 404:
                raise
        there = None
    if there is None:
        if await ensure(slices, desired):
            return
    elif _says_the_same(there, desired):
        return

    def changed(old: discovery.EndpointSlice | None) -> discovery.EndpointSlice:
        if old is None:
            return desired
        old.endpoints, old.ports, old.metadata.labels = desired.endpoints, desired.ports, dict(_SLICE_LABELS)
        return old

    await slices.update(ctx, NAME, changed)


def _says_the_same(one: discovery.EndpointSlice, other: discovery.EndpointSlice) -> bool:
    return (one.endpoints, one.ports, one.metadata.labels) == (other.endpoints, other.ports, other.metadata.labels)
