"""Controller of EndpointSlices of Services with a selector (pkg/controller/endpointslice)."""

from __future__ import annotations

from functools import partial
from typing import Final

from steersman.api.core.v1 import Node, Pod, Service
from steersman.api.discovery.v1 import EndpointSlice
from steersman.client.errors import is_namespace_terminating, is_not_found
from steersman.client.events import reference
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import Informer, Key
from steersman.client.resources import ENDPOINT_SLICES, NODES, SERVICES
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.services.addresses import families_of
from steersman.controllers.services.endpoint import ZONE, DesiredEndpoint, endpoint_of, uses_zone_shares
from steersman.controllers.services.packing import (
    MANAGER,
    Changes,
    Packing,
    prepared,
    recycle,
    services_of_slice,
)
from steersman.controllers.services.pods_of_services import PodsOfService, PodsOfServicesController
from steersman.controllers.services.ports import ports_of_pod
from steersman.controllers.services.selecting import affected_services, may_be_reached
from steersman.controllers.services.topology import ZoneShares, is_node_ready
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater

_NODES: Final[Key] = "", ""
"""Key for a change of nodes and their zones."""
_NODES_WAIT: Final = 1.0
"""Seconds during which changes of nodes are collected."""
_FOREIGN_WAIT: Final = 1.0
"""Seconds before changes of slices by other clients are reconciled."""


_services_of: Final = partial(services_of_slice, MANAGER)


class _State(PodsOfService):
    """Pods and slices of a Service, by family."""

    def __init__(self, service: Service, nodes: Informer[Node]) -> None:
        super().__init__(service)
        self._nodes = nodes
        self.packings: dict[str, Packing] = {}
        self.on_unknown_nodes: dict[str, str] = {}
        """Names of unknown nodes, by pod."""
        self.deleted: set[str] = set()
        """Uids of slices that the controller has deleted but the informer still has."""
        self.is_writing = False
        """True while slices are being written: reported changes may be the controller's own."""

    def packing(self, family: str) -> Packing:
        packing = self.packings.get(family)
        if packing is None:
            packing = self.packings[family] = Packing(family)
        return packing

    def put(self, pod: Pod) -> None:
        name = pod.metadata.name
        self.on_unknown_nodes.pop(name, None)
        if not may_be_reached(pod, terminating=True):
            self.remove(name)
            return
        service = self.service
        node = self._nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
        if node is None:
            self.on_unknown_nodes[name] = pod.spec.node_name
        skipped = node is None and not service.spec.publish_not_ready_addresses
        ports = ports_of_pod(service, pod)
        families = families_of(service)
        for family in {*families, *self.packings}:
            endpoint = None if skipped or family not in families else endpoint_of(pod, node, service, family)
            self.packing(family).set_desired(name, DesiredEndpoint(ports, endpoint))

    def remove(self, name: str) -> None:
        self.on_unknown_nodes.pop(name, None)
        for each in self.packings.values():
            each.set_desired(name, None)

    def slice_changed(self, slice_: EndpointSlice) -> bool:
        """Record a slice from the informer. Return True if another client has changed it."""
        metadata = slice_.metadata
        packing = self.packing(slice_.address_type)
        cached = packing.slices.get(metadata.name)
        if metadata.uid in self.deleted or (
            cached is not None and int(cached.metadata.resource_version) >= int(metadata.resource_version)
        ):
            return False
        if metadata.deletion_timestamp:
            packing.remove_slice(metadata.name)
        else:
            packing.put_slice(slice_)
            return packing.is_dirty(metadata.name) or (packing.ignores_hints and not self.is_writing)
        return True

    def slice_deleted(self, slice_: EndpointSlice) -> bool:
        """Record the deletion of a slice. Return True if the slice was still in use."""
        metadata = slice_.metadata
        packing = self.packing(slice_.address_type)
        cached = packing.slices.get(metadata.name)
        self.deleted.discard(metadata.uid)
        if cached is None or cached.metadata.uid != metadata.uid:
            return False
        packing.remove_slice(metadata.name)
        return True


class EndpointSliceController(PodsOfServicesController[_State]):
    """Keeps EndpointSlices. A key is the namespace and name of a Service."""

    name = "endpointslice-controller"
    account = "endpointslice-controller"
    component = "endpoint-slice-controller"
    retry_delay = 1.0

    def __init__(self, dependencies: ControllerDependencies) -> None:
        self._nodes = dependencies.informers.for_resource(NODES)
        self._slices = dependencies.informers.for_resource(ENDPOINT_SLICES)
        self._slices.add_index(MANAGER, _services_of)
        self._zones = ZoneShares()
        self._zones_are_known = False
        super().__init__(dependencies)
        self.pods.add_index(BY_NODE, by_node)
        self._nodes.on_change(self._node_changed)
        self._slices.on_change(self._slice_changed)

    def new_state(self, service: Service) -> _State:
        state = _State(service, self._nodes)
        for each in self._slices.indexed(MANAGER, f"{service.metadata.namespace}/{service.metadata.name}"):
            state.slice_changed(each)
        return state

    async def service_deleted(self, key: Key) -> None:
        """Drop the state of a deleted Service. The garbage collector deletes its slices."""
        for family in ("IPv4", "IPv6"):
            self._zones.forget(key, family)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        moved = old is None or new is None or _zone(old) != _zone(new)
        if moved or (old is not None and new is not None and is_node_ready(old) != is_node_ready(new)):
            self._zones_are_known = False
            if self._zones.has_services:
                self.queue.add_after(_NODES, _NODES_WAIT)
        if moved:
            self._pods_moved((new or old).metadata.name)  # type: ignore[union-attr]

    def _pods_moved(self, node: str) -> None:
        """Note that the pods of a node are in another zone. They are processed with the next change of their Services."""
        for pod in self.pods.indexed(BY_NODE, node):
            name = pod.metadata.name
            for key in affected_services(self.services, None, pod):
                state = self.states.get(key)
                if state is not None:
                    state.changed[name] = None
                    if name in state.on_unknown_nodes:
                        self.queue.add(key)

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        before, after = (next(iter(_services_of(each)), "") if each is not None else "" for each in (old, new))
        if old is not None and before and before != after:
            self._slice_reported(before, old, ended=True)
        if new is not None and after:
            self._slice_reported(after, new, ended=False)

    def _slice_reported(self, service: str, slice_: EndpointSlice, *, ended: bool) -> None:
        namespace, _, name = service.partition("/")
        state = self.states.get((namespace, name))
        if state is None or (state.slice_deleted(slice_) if ended else state.slice_changed(slice_)):
            self.queue.add_after((namespace, name), _FOREIGN_WAIT)

    async def sync(self, key: Key) -> None:
        if key != _NODES:
            await super().sync(key)
            return
        for each in self._known_zones().overloaded():
            self.queue.add(each)

    def _known_zones(self) -> ZoneShares:
        """Return the zones' shares for the current nodes."""
        if not self._zones_are_known:
            self._zones.set_nodes(self._nodes)
            self._zones_are_known = True
        return self._zones

    async def write(self, key: Key, state: _State) -> None:
        time = state.trigger_times.take_earliest(state.service)
        error: StatusError | TryLater | None = None
        state.is_writing = True
        try:
            await self._write_all(key, state, time)
        except (StatusError, TryLater) as failed:
            error = failed
        finally:
            state.is_writing = False
        if error is None and not state.service.spec.publish_not_ready_addresses:
            error = _unknown_nodes_error(state)
        if error is not None:
            about = reference(SERVICES, state.service)
            text = f"Error updating Endpoint Slices for Service {key[0]}/{key[1]}: {error}"
            self.recorder.event(about, "Warning", "FailedToUpdateEndpointSlices", text)
            state.changed.update(dict.fromkeys(state.on_unknown_nodes))
            raise error

    async def _write_all(self, key: Key, state: _State, time: str) -> None:
        """Write the slices of all families. Raises StatusError, TryLater."""
        families = families_of(state.service)
        for family in families:
            await self._write_family(key, state, state.packing(family), time)
        for family, packing in list(state.packings.items()):
            if family not in families:
                self._zones.forget(key, family)
                for each in list(packing.slices.values()):
                    await self._delete(state, packing, each)

    async def _write_family(self, key: Key, state: _State, packing: Packing, time: str) -> None:
        service = state.service
        shares_zones = uses_zone_shares(service)
        packing.ignore_hints(shares_zones)
        changes = packing.plan(service)
        topology_events = []
        if shares_zones:
            written = {each.metadata.name for each in (*changes.update, *changes.delete)}
            unchanged = [each for name, each in packing.slices.items() if name not in written]
            topology_events = list(self._known_zones().set_hints(key, packing.family, changes, unchanged))
        elif self._zones.forget(key, packing.family):
            text = f"Topology Aware Hints has been disabled, addressType: {packing.family}"
            self.recorder.event(reference(SERVICES, service), "Warning", "TopologyAwareHintsDisabled", text)
        recycle(changes, service)
        await self._apply(state, packing, changes, time)
        for each in topology_events:
            self.recorder.event(reference(SERVICES, service), *each)

    async def _apply(self, state: _State, packing: Packing, changes: Changes, time: str) -> None:
        service = f"{state.service.metadata.namespace}/{state.service.metadata.name}"
        if not state.service.metadata.deletion_timestamp:
            for each in changes.create:
                try:
                    packing.put_slice(
                        _without_managed_fields(await self.client.create(ENDPOINT_SLICES, prepared(each, time)))
                    )
                except StatusError as error:
                    if is_namespace_terminating(error):
                        return
                    raise TryLater(f"failed to create EndpointSlice for Service {service}: {error}") from error
        for each in changes.update:
            name = each.metadata.name
            try:
                packing.put_slice(
                    _without_managed_fields(await self.client.update(ENDPOINT_SLICES, prepared(each, time)))
                )
            except StatusError as error:
                if is_not_found(error):
                    packing.remove_slice(name)
                raise TryLater(f"failed to update {name} EndpointSlice for Service {service}: {error}") from error
        for each in changes.delete:
            await self._delete(state, packing, each)

    async def _delete(self, state: _State, packing: Packing, slice_: EndpointSlice) -> None:
        name, namespace = slice_.metadata.name, slice_.metadata.namespace
        try:
            await self.client.delete(ENDPOINT_SLICES, name, namespace)
        except StatusError as error:
            if not is_not_found(error):
                service = f"{namespace}/{state.service.metadata.name}"
                raise TryLater(f"failed to delete {name} EndpointSlice for Service {service}: {error}") from error
        state.deleted.add(slice_.metadata.uid)
        packing.remove_slice(name)


def _unknown_nodes_error(state: _State) -> TryLater | None:
    """Return an error about the pods on unknown nodes, None if there are none."""
    if not state.on_unknown_nodes:
        return None
    metadata = state.service.metadata
    texts = [
        f"skipping Pod {pod} for Service {metadata.namespace}/{metadata.name}: Node {node} Not Found"
        for pod, node in list(state.on_unknown_nodes.items())[:10]
    ]
    return TryLater(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _without_managed_fields(slice_: EndpointSlice) -> EndpointSlice:
    """Return a slice without managedFields, as informers have it."""
    slice_.metadata.managed_fields = []
    return slice_


def _zone(node: Node) -> str | None:
    return node.metadata.labels.get(ZONE)
