"""Controller of Endpoints of Services with a selector (pkg/controller/endpoint)."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.core.v1 import EndpointAddress, Endpoints, ObjectReference, Pod, Service
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.errors import ignoring, is_namespace_terminating, is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key, key_of
from steersman.client.resources import ENDPOINTS
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.services.addresses import first_family, has_cluster_ip, pod_addresses
from steersman.controllers.services.pods_of_services import PodsOfService, PodsOfServicesController
from steersman.controllers.services.ports import Ports, ports_of_pod
from steersman.controllers.services.selecting import hostname_in, may_be_reached
from steersman.controllers.services.subsets import AddressKey, Group, in_order, key_of_address, repack, truncated
from steersman.controllers.services.trigger_times import with_trigger_time
from steersman.machinery.built_in.pod_state import is_ready
from steersman.machinery.errors.status import StatusError

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
HEADLESS: Final = "service.kubernetes.io/headless"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"


class _Listed(Struct):
    """Sorted addresses with the same ports."""

    ready: list[AddressKey] = field(default_factory=list)
    not_ready: list[AddressKey] = field(default_factory=list)


class _State(PodsOfService):
    """Addresses of a Service's pods, by their ports."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.written: Endpoints | None = None
        """Endpoints in the response to the last write, until the informer has them."""
        self._listed: dict[Ports, _Listed] = {}
        self._addresses: dict[AddressKey, EndpointAddress] = {}
        self._places: dict[str, tuple[Ports, AddressKey, bool]] = {}
        """Ports, address key, and True for a ready address, by pod."""

    def put(self, pod: Pod) -> None:
        self.remove(pod.metadata.name)
        service = self.service
        if not may_be_reached(pod, terminating=service.spec.publish_not_ready_addresses):
            return
        address = _address(service, pod)
        ports = ports_of_pod(service, pod)
        if address is None or not (ports or (not service.spec.ports and not has_cluster_ip(service))):
            return
        key = key_of_address(address)
        ready = service.spec.publish_not_ready_addresses or is_ready(pod)
        listed = self._listed.setdefault(ports, _Listed())
        insort(listed.ready if ready else listed.not_ready, key)
        self._addresses[key] = address
        self._places[pod.metadata.name] = ports, key, ready

    def remove(self, name: str) -> None:
        place = self._places.pop(name, None)
        if place is None:
            return
        ports, key, ready = place
        listed = self._listed[ports]
        keys = listed.ready if ready else listed.not_ready
        del keys[bisect_left(keys, key)]
        if not listed.ready and not listed.not_ready:
            del self._listed[ports]
        del self._addresses[key]

    def desired(self, current: Endpoints, time: str) -> Endpoints:
        """Return the desired Endpoints."""
        groups = [Group(ports, listed.ready, listed.not_ready) for ports, listed in self._listed.items()]
        subsets, is_truncated = truncated(in_order(repack(groups)))
        annotations = with_trigger_time(current.metadata.annotations, time)
        annotations.pop(OVER_CAPACITY, None)
        if is_truncated:
            annotations[OVER_CAPACITY] = "truncated"
        labels = {**self.service.metadata.labels, MANAGED_BY: MANAGER}
        labels.pop(HEADLESS, None)
        if not has_cluster_ip(self.service):
            labels[HEADLESS] = ""
        replace = msgspec.structs.replace
        metadata = replace(current.metadata, labels=labels, annotations=annotations)
        return replace(current, metadata=metadata, subsets=[each.of_endpoints(self._addresses) for each in subsets])


class EndpointsController(PodsOfServicesController[_State]):
    """Keeps Endpoints. A key is the namespace and name of a Service."""

    name = "endpoints-controller"
    account = "endpoint-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        self._endpoints = dependencies.informers.for_resource(ENDPOINTS)
        super().__init__(dependencies)
        self._endpoints.on_change(self._endpoints_changed)

    def new_state(self, service: Service) -> _State:
        return _State(service)

    def _endpoints_changed(self, old: Endpoints | None, new: Endpoints | None) -> None:
        if new is None and old is not None:
            state = self.states.get(key_of(old))
            if state is not None:
                state.written = None
            self.queue.add(key_of(old))

    async def run(self) -> None:
        for each in self._endpoints:  # their Services may have been deleted while no controller was running
            if LEADER not in each.metadata.annotations:
                self.queue.add(key_of(each))
        await super().run()

    async def service_deleted(self, key: Key) -> None:
        namespace, name = key
        with ignoring(is_not_found):
            await self.client.delete(ENDPOINTS, name, namespace)

    async def write(self, key: Key, state: _State) -> None:
        time = state.trigger_times.take_earliest(state.service)
        current = self._newest(key, state)
        is_new = current is None
        if current is None:
            current = Endpoints(metadata=ObjectMeta(name=key[1], namespace=key[0]))
        desired = state.desired(current, time)
        if not is_new and _is_up_to_date(current, desired):
            return
        try:
            if is_new:
                written = await self.client.create(ENDPOINTS, desired)
            else:
                written = await self.client.update(ENDPOINTS, desired)
        except StatusError as error:
            if is_new and is_namespace_terminating(error):
                return
            self._record_failure(key, desired, error, is_new=is_new)
            raise
        written.metadata.managed_fields = []
        state.written = written

    def _newest(self, key: Key, state: _State) -> Endpoints | None:
        """Return the newest known Endpoints: the written ones or those of the informer."""
        cached, written = self._endpoints.get(*key), state.written
        if written is None or (
            cached is not None and int(cached.metadata.resource_version) >= int(written.metadata.resource_version)
        ):
            state.written = None
            return cached
        return written

    def _record_failure(self, key: Key, endpoints: Endpoints, error: StatusError, *, is_new: bool) -> None:
        namespace, name = key
        if is_new:
            reason, text = (
                "FailedToCreateEndpoint",
                f"Failed to create endpoint for service {namespace}/{name}: {error}",
            )
        else:
            reason, text = "FailedToUpdateEndpoint", f"Failed to update endpoint {namespace}/{name}: {error}"
        self.recorder.event(reference(ENDPOINTS, endpoints), "Warning", reason, text)


def _address(service: Service, pod: Pod) -> EndpointAddress | None:
    """Return the address of a pod; None if the pod has no address of the Service's first family."""
    addresses = pod_addresses(pod, first_family(service, pod))
    if not addresses:
        return None
    metadata = pod.metadata
    return EndpointAddress(
        ip=addresses[0],
        hostname=hostname_in(pod, service),
        node_name=pod.spec.node_name,
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
    )


def _is_up_to_date(current: Endpoints, desired: Endpoints) -> bool:
    """Return True if nothing has to be written. As upstream, the label of headless Services alone is ignored."""
    labels, wanted_labels = (
        {key: value for key, value in each.metadata.labels.items() if key != HEADLESS} for each in (current, desired)
    )
    truncation, wanted_truncation = (each.metadata.annotations.get(OVER_CAPACITY) for each in (current, desired))
    return labels == wanted_labels and truncation == wanted_truncation and current.subsets == desired.subsets
