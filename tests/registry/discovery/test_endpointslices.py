"""Endpoints and EndpointSlices: addresses, ports, and their shortened columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.core.v1 import Endpoints
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.services.endpoints import ENDPOINTS, format_endpoints
from steersman.registry.discovery.endpointslices import ENDPOINT_SLICES

GROUP = "discovery.k8s.io"


@pytest.mark.parametrize(
    ("subset", "faults"),
    [
        ({}, ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]),
        (
            {"addresses": [{"ip": "127.0.0.1"}]},
            [
                'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range '
                "(127.0.0.0/8, ::1/128)"
            ],
        ),
        (
            {"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 0}, {"name": "b", "port": 2, "protocol": "X"}]},
            [
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                'subsets[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
            ],
        ),
    ],
)
async def test_invalid_endpoints_are_refused(
    cluster: Callable[..., Any], subset: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(ENDPOINTS)
    assert await c.faults(c.create("endpoints", {"metadata": {"name": "e"}, "subsets": [subset]})) == faults


def test_table_shows_three_addresses() -> None:
    addresses = [{"ip": f"10.0.0.{last}"} for last in (1, 2)]
    subset = {"addresses": addresses, "ports": [{"port": 80}, {"port": 443}]}
    endpoints = from_plain(Endpoints, {"subsets": [subset, {"addresses": [{"ip": "fd00::1"}]}]})
    assert format_endpoints(endpoints) == "10.0.0.1:80,10.0.0.2:80,10.0.0.1:443 + 2 more..."
    assert format_endpoints(Endpoints()) == "<none>"


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"addressType": ""}, ["addressType: Required value"]),
        (
            {"addressType": "IPv6", "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": []}]},
            [
                'endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address',
                "endpoints[1].addresses: Required value: must contain at least 1 address",
            ],
        ),
        (
            {"addressType": "FQDN", "endpoints": [{"addresses": ["short", "a.example.com."]}]},
            [
                'endpoints[0].addresses[0]: Invalid value: "short": should be a domain with at least two segments '
                "separated by dots"
            ],
        ),
        (
            {"addressType": "IPv4", "ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]},
            ['ports[1].name: Duplicate value: "a"'],
        ),
    ],
)
async def test_invalid_slice_is_refused(cluster: Callable[..., Any], body: dict[str, Any], faults: list[str]) -> None:
    c = await cluster(ENDPOINT_SLICES)
    body = {"metadata": {"name": "s"}, **body}
    assert await c.faults(c.create("endpointslices", body, group=GROUP)) == faults


async def test_slice_counts_generations_and_drops_topology(cluster: Callable[..., Any]) -> None:
    c = await cluster(ENDPOINT_SLICES)
    endpoint = {"addresses": ["10.0.0.1"], "deprecatedTopology": {"kubernetes.io/hostname": "n"}}
    body = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [endpoint], "ports": [{"port": 80}]}
    made = await c.create("endpointslices", body, group=GROUP)
    assert made["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {}}]
    assert made["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
    assert made["metadata"]["generation"] == 1
    made["ports"][0]["port"] = 81
    made = await c.update("endpointslices", made, group=GROUP)
    assert made["metadata"]["generation"] == 2
    faults = await c.faults(c.update("endpointslices", {**made, "addressType": "IPv6", "endpoints": []}, group=GROUP))
    assert faults == ['addressType: Invalid value: "IPv6": field is immutable']
