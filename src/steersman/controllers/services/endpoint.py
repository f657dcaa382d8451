"""Endpoint of a pod in an EndpointSlice (k8s.io/endpointslice podToEndpoint, trafficdist)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.api.core.v1 import Node, ObjectReference, Pod, Service
from steersman.api.discovery.v1 import Endpoint, EndpointConditions, EndpointHints, ForNode, ForZone
from steersman.controllers.services.addresses import pod_addresses
from steersman.controllers.services.ports import Ports
from steersman.controllers.services.selecting import hostname_in
from steersman.machinery.built_in.pod_state import is_ready

ZONE: Final = "topology.kubernetes.io/zone"
_MODES: Final = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
_NEAR: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")


class DesiredEndpoint(Struct, frozen=True):
    """Desired ports and endpoint of a pod; `endpoint` is None if the pod has no address of the family."""

    ports: Ports
    endpoint: Endpoint | None


def endpoint_of(pod: Pod, node: Node | None, service: Service, family: str) -> Endpoint | None:
    """Return the endpoint of a pod, None if the pod has no address of the family."""
    addresses = pod_addresses(pod, family)
    if not addresses:
        return None
    serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    zone = (node.metadata.labels.get(ZONE) if node is not None else None) or None
    node_name = pod.spec.node_name or None
    metadata = pod.metadata
    return Endpoint(
        addresses=sorted(addresses),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        node_name=node_name,
        zone=zone,
        hostname=hostname_in(pod, service) or None,
        hints=_near_hints(service, zone, node_name) if ready else None,
    )


def uses_zone_shares(service: Service) -> bool:
    """Return True if hints follow the zones' share of CPUs (topology-mode Auto) instead of `trafficDistribution`."""
    annotations = service.metadata.annotations
    mode = next((annotations[each] for each in _MODES if each in annotations), "")
    return mode in ("Auto", "auto")


def _near_hints(service: Service, zone: str | None, node: str | None) -> EndpointHints | None:
    """Return hints for clients in the same zone or on the same node, None if the Service does not prefer near
    endpoints.
    """
    distribution = service.spec.traffic_distribution
    if distribution not in _NEAR or uses_zone_shares(service):
        return None
    zones = [ForZone(name=zone)] if zone else []
    nodes = [ForNode(name=node)] if node and distribution == "PreferSameNode" else []
    return EndpointHints(for_zones=zones, for_nodes=nodes) if zones or nodes else None
