"""Nodes: taints, pod ranges, immutable fields, and the Table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.core.v1 import Node
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.nodes import NODES
from steersman.registry.core.proxy_names import split_scheme_name_port
from steersman.registry.kubelet import KubeletConnection


def node(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n"}, "spec": spec, "status": status or {}}


async def test_pod_range_and_pod_ranges_are_brought_together(cluster: Callable[..., Any]) -> None:
    c = await cluster(NODES)
    spec = (await c.create("nodes", node(podCIDR="10.1.0.0/24", podCIDRs=["10.2.0.0/24"])))["spec"]
    assert spec == {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}


async def test_allocatable_defaults_to_capacity(cluster: Callable[..., Any]) -> None:
    c = await cluster(NODES)
    status = (await c.create("nodes", node(status={"capacity": {"cpu": "4"}})))["status"]
    assert status["allocatable"] == {"cpu": "4"}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (
            node(taints=[{"key": "d", "effect": "NoExecute"}, {"key": "d", "effect": "NoExecute"}]),
            [
                'metadata.taints[1]: Duplicate value: {"Key":"d","Value":"","Effect":"NoExecute","TimeAdded":null}: '
                "taints must be unique by key and effect pair"
            ],
        ),
        (
            node(taints=[{"key": "d", "effect": "Never"}]),
            [
                'metadata.taints[0].effect: Unsupported value: "Never": supported values: '
                '"NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
        ),
        (
            node(podCIDRs=["10.1.0.0/24", "10.2.0.0/24"]),
            [
                'spec.podCIDRs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: '
                "may specify no more than one CIDR for each IP family"
            ],
        ),
        (
            node(podCIDRs=["10.1.0.0/24", "x"]),
            [
                'spec.podCIDRs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
                "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:"
                "invalid CIDR[1]: <nil> (invalid CIDR address: x)",
                'spec.podCIDRs: Invalid value: ["10.1.0.0/24","x"]: '
                "may specify no more than one CIDR for each IP family",
            ],
        ),
        (
            node(status={"capacity": {"cpu": "-1"}, "allocatable": {"cpu": "1"}}),
            ['status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            node(status={"declaredFeatures": ["B", "A"]}),
            ['status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically'],
        ),
    ],
)
async def test_invalid_node_is_refused(cluster: Callable[..., Any], body: dict[str, Any], faults: list[str]) -> None:
    c = await cluster(NODES)
    assert await c.faults(c.create("nodes", body)) == faults


async def test_pod_range_and_provider_are_set_once(cluster: Callable[..., Any]) -> None:
    c = await cluster(NODES)
    await c.create("nodes", node())
    await c.update("nodes", node(podCIDR="10.1.0.0/24", providerID="a://b"))
    assert await c.faults(c.update("nodes", node(podCIDR="10.2.0.0/24", providerID="c://d"))) == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
    ]


async def test_status_keeps_the_spec_and_the_spec_the_status(cluster: Callable[..., Any]) -> None:
    c = await cluster(NODES)
    await c.create("nodes", node(unschedulable=True))
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    after = await c.update("nodes", node(status={"addresses": addresses}), subresource="status")
    assert (after["spec"], after["status"]["addresses"]) == ({"unschedulable": True}, addresses)
    assert (await c.update("nodes", node()))["status"]["addresses"] == addresses
    twice = node(status={"addresses": addresses * 2})
    assert await c.faults(c.update("nodes", twice, subresource="status")) == [
        'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"192.0.2.1"}'
    ]


def test_table_shows_readiness_roles_and_kernel() -> None:
    body = {
        "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "big"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "nodeInfo": {"kernelVersion": "6", "architecture": "amd64"},
        },
    }
    obj = from_plain(Node, body)
    cells = {column.name: column.cell(obj) for column in NODES.columns if column.cell is not None}
    assert cells["Status"] == "NotReady,SchedulingDisabled"
    assert cells["Roles"] == "big,control-plane"
    assert cells["Kernel-Version"] == "6 (amd64)"
    assert (cells["Internal-IP"], cells["OS-Image"]) == ("<none>", "<unknown>")


def test_kubelet_is_reached_by_the_preferred_address() -> None:
    addresses = [{"type": "ExternalIP", "address": "e"}, {"type": "InternalIP", "address": "i"}]
    node = from_plain(Node, {"status": {"addresses": addresses}})
    assert KubeletConnection().host(node) == "i"
    assert KubeletConnection(address_types=("Hostname", "ExternalIP")).host(node) == "e"
    with pytest.raises(StatusError, match=r"no preferred addresses found; known addresses: \[\]"):
        KubeletConnection().host(Node())


def test_kubelet_listens_where_its_node_says() -> None:
    endpoints = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}}}
    assert KubeletConnection().port(from_plain(Node, {"status": endpoints})) == 1234
    assert KubeletConnection().port(Node()) == 10250


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("", "a", "")),
        ("a:80", ("", "a", "80")),
        ("https:a:web", ("https", "a", "web")),
        ("ftp:a:80", None),
        ("http::80", None),
        ("a:b:c:d", None),
    ],
)
def test_proxy_names_have_up_to_three_parts(text: str, parts: tuple[str, str, str] | None) -> None:
    assert split_scheme_name_port(text) == parts
