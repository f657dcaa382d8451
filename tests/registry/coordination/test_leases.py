"""Leases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.coordination.leases import LEASES

GROUP = "coordination.k8s.io"


async def test_invalid_lease_is_refused(cluster: Callable[..., Any]) -> None:
    c = await cluster(LEASES)
    spec = {"leaseDurationSeconds": 0, "leaseTransitions": -1}
    assert await c.faults(c.create("leases", {"metadata": {"name": "l"}, "spec": spec}, group=GROUP)) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]


async def test_members_of_disabled_features_are_dropped(cluster: Callable[..., Any]) -> None:
    c = await cluster(LEASES)
    spec = {"holderIdentity": "a", "strategy": "OldestEmulationVersion", "preferredHolder": "b"}
    made = await c.create("leases", {"metadata": {"name": "l"}, "spec": spec}, group=GROUP)
    assert made["spec"] == {"holderIdentity": "a"}
    assert (await c.change("leases", "l", group=GROUP, **spec))["spec"] == {"holderIdentity": "a"}


async def test_update_needs_a_version(cluster: Callable[..., Any]) -> None:
    c = await cluster(LEASES)
    body = {"metadata": {"name": "l"}, "spec": {}}
    await c.create("leases", body, group=GROUP)
    assert await c.faults(c.update("leases", body, group=GROUP)) == [
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    ]
