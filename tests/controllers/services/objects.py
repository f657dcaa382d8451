"""Services and pods with addresses for tests, and access to slices."""

from __future__ import annotations

from typing import Any

from steersman.api.core.v1 import (
    Container,
    ContainerPort,
    Node,
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.api.discovery.v1 import EndpointSlice
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import is_already_exists
from steersman.client.resources import ENDPOINT_SLICES, NODES, PODS, SERVICES
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

LABELS = {"app": "a"}


def pod(name: str, *ips: str, ready: bool = True, node: str = "node-a", **spec: Any) -> Pod:
    """Return a running pod as informers have it."""
    ports = [ContainerPort(name="web", container_port=8080, protocol="TCP")]
    condition = PodCondition(
        type="Ready", status="True" if ready else "False", last_transition_time="2026-01-01T00:00:00Z"
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", labels=dict(LABELS), uid=f"uid-{name}"),
        spec=PodSpec(node_name=node, containers=[Container(name="c", image="i", ports=ports)], **spec),
        status=PodStatus(
            phase="Running",
            pod_ip=ips[0] if ips else "",
            pod_ips=[PodIP(ip=each) for each in ips],
            conditions=[condition],
        ),
    )


def service(name: str = "s", **spec: Any) -> Service:
    """Return a Service that selects these pods."""
    given = {"ports": [ServicePort(port=80, protocol="TCP", target_port=8080)], "selector": dict(LABELS), **spec}
    return Service(metadata=ObjectMeta(name=name, namespace="default"), spec=ServiceSpec(**given))


async def make_node(client: Client, name: str = "node-a", zone: str = "") -> None:
    """Create a node in a zone."""
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    await client.create(NODES, Node(metadata=ObjectMeta(name=name, labels=labels)))


async def make_service(client: Client, name: str = "s", **spec: Any) -> Service:
    """Create a Service."""
    return await client.create(SERVICES, service(name, **spec))


async def run_pod(client: Client, name: str, *ips: str, ready: bool = True, node: str = "node-a") -> None:
    """Create a pod with these addresses and this readiness."""
    made = pod(name, *ips, ready=ready, node=node)
    try:
        await client.create(PODS, made)
    except StatusError as error:
        if not is_already_exists(error):
            raise
    status = {
        "phase": "Running",
        "podIP": ips[0],
        "podIPs": [{"ip": each} for each in ips],
        "conditions": [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": times.now()}],
    }
    await client.patch(PODS, name, "default", {"status": status}, media=STRATEGIC_MERGE_PATCH, subresource="status")


async def slices_of(client: Client, service: str = "s") -> list[EndpointSlice]:
    """Return the slices of a Service."""
    endpoint_slices = await client.list(
        ENDPOINT_SLICES, "default", label_selector=f"kubernetes.io/service-name={service}"
    )
    return endpoint_slices.items


async def ready_in_slices(client: Client, service: str = "s") -> dict[str, bool]:
    """Return the readiness of each pod in the slices of a Service."""
    return {
        each.target_ref.name: bool(each.conditions.ready)
        for slice_ in await slices_of(client, service)
        for each in slice_.endpoints or ()
        if each.target_ref is not None
    }
