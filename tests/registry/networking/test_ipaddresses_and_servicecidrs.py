"""IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.networking.ipaddresses import IP_ADDRESSES
from steersman.registry.networking.servicecidrs import SERVICE_CIDRS

GROUP = "networking.k8s.io"
PARENT = {"resource": "services", "namespace": "ns", "name": "s"}


async def test_name_is_a_canonical_address(cluster: Callable[..., Any]) -> None:
    c = await cluster(IP_ADDRESSES)

    def create(name: str) -> Any:
        return c.create("ipaddresses", {"metadata": {"name": name}, "spec": {"parentRef": PARENT}}, group=GROUP)

    await create("fd00::1")
    assert await c.faults(create("fd00:0::1")) == [
        'metadata.name: Invalid value: "fd00:0::1": must be in canonical form ("fd00::1")'
    ]
    assert len(await c.faults(create("a"))) == 1


async def test_parent_does_not_change(cluster: Callable[..., Any]) -> None:
    c = await cluster(IP_ADDRESSES)
    body = {"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": PARENT}}
    await c.create("ipaddresses", body, group=GROUP)
    assert await c.faults(c.change("ipaddresses", "10.0.0.1", group=GROUP, parentRef={**PARENT, "name": "t"})) == [
        'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"ns","Name":"t"}: '
        "field is immutable"
    ]


@pytest.mark.parametrize(
    ("cidrs", "faults"),
    [
        ([], ["spec.cidrs: Required value: at least one CIDR required"]),
        (
            ["10.0.0.0/8"] * 3,
            [
                'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/8","10.0.0.0/8","10.0.0.0/8"]}: '
                "may only hold up to 2 values"
            ],
        ),
        (
            ["10.0.0.0/8", "11.0.0.0/8"],
            [
                'spec.cidrs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: may specify no more than one IP for each IP '
                "family, i.e 192.168.0.0/24 and 2001:db8::/64"
            ],
        ),
    ],
)
async def test_invalid_range_is_refused(cluster: Callable[..., Any], cidrs: list[str], faults: list[str]) -> None:
    c = await cluster(SERVICE_CIDRS)
    body = {"metadata": {"name": "r"}, "spec": {"cidrs": cidrs}}
    assert await c.faults(c.create("servicecidrs", body, group=GROUP)) == faults


async def test_other_family_may_be_added(cluster: Callable[..., Any]) -> None:
    c = await cluster(SERVICE_CIDRS)
    await c.create("servicecidrs", {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.0.0.0/8"]}}, group=GROUP)
    both = ["10.0.0.0/8", "fd00::/112"]
    assert (await c.change("servicecidrs", "r", group=GROUP, cidrs=both))["spec"] == {"cidrs": both}
    assert await c.faults(c.change("servicecidrs", "r", group=GROUP, cidrs=["10.0.0.0/8", "fd01::/112"])) == [
        'spec.cidrs[1]: Invalid value: "fd01::/112": field is immutable'
    ]
    assert await c.faults(c.change("servicecidrs", "r", group=GROUP, cidrs=["10.0.0.0/8"])) == [
        'spec.cidrs: Invalid value: ["10.0.0.0/8"]: field is immutable'
    ]
