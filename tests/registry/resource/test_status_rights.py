"""Authorization of changes to a claim's status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from steersman.api.resource.v1 import ResourceClaim
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.identity.action import Action
from steersman.registry.resource.status_rights import missing_permissions
from steersman.rest.context import Context

NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
DEVICE = {"driver": "d.example.com", "pool": "p", "device": "x"}
ALLOCATION = {"devices": {"results": [{"request": "r", **DEVICE}]}, "nodeSelector": NODE}
DRIVER = UserInfo("system:serviceaccount:ns:driver", extra={"authentication.kubernetes.io/node-name": ("n1",)})


class Rights:
    """An authorizer that allows the listed permissions, each as `VERB SUBRESOURCE NAMESPACE/NAME`."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = set(allowed)

    def authorize(self, asked: Attributes) -> Verdict:
        of = asked.action
        assert (of.group, of.resource) == ("resource.k8s.io", "resourceclaims")
        right = f"{of.verb} {of.subresource} {of.namespace}/{of.name}"
        return Verdict(Decision.ALLOW if right in self._allowed else Decision.NO_OPINION)


def claim(**status: Any) -> ResourceClaim:
    return from_plain(ResourceClaim, {"metadata": {"name": "c", "namespace": "ns"}, "status": status})


async def refused(new: ResourceClaim, old: ResourceClaim, *rights: str, user: UserInfo | None = None) -> list[str]:
    """Return the fields that the user may not change."""
    action = Action("update", "resource.k8s.io", "v1", "resourceclaims", "status", "ns", "c")
    ctx = Context(user or UserInfo("alice"), action)
    return [error.field for error in await missing_permissions(Rights(rights), ctx, new, old)]


@pytest.mark.parametrize(
    "status",
    [{"allocation": ALLOCATION}, {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}]}],
)
async def test_who_binds_claims_may_bind_all(status: dict[str, Any]) -> None:
    assert await refused(claim(**status), claim()) == ["status.allocation"]
    assert await refused(claim(**status), claim(), "update binding ns/c") == ["status.allocation"]
    assert await refused(claim(**status), claim(), "update binding /") == []
    assert await refused(claim(**status), claim(**status)) == []


async def test_a_driver_tells_of_its_own_devices() -> None:
    before = claim(allocation=ALLOCATION)
    after = claim(allocation=ALLOCATION, devices=[{**DEVICE, "data": {"a": 1}}])
    right = "arbitrary-node:update driver ns/d.example.com"
    assert await refused(after, before) == ["status.devices"]
    assert await refused(after, before, "arbitrary-node:update driver ns/other.example.com") == ["status.devices"]
    assert await refused(after, before, right) == []
    assert await refused(before, after) == ["status.devices"], "to take it away is a change too"
    assert await refused(after, after) == []


async def test_a_driver_of_the_node_needs_a_right_for_its_node_only() -> None:
    before = claim(allocation=ALLOCATION)
    after = claim(allocation=ALLOCATION, devices=[DEVICE])
    right = "associated-node:update driver ns/d.example.com"
    assert await refused(after, before, right, user=DRIVER) == []
    assert await refused(after, before, right) == ["status.devices"], "alice runs nowhere"
    other = UserInfo(DRIVER.name, extra={"authentication.kubernetes.io/node-name": ("n2",)})
    assert await refused(after, before, right, user=other) == ["status.devices"]
    everywhere = {"devices": ALLOCATION["devices"]}
    anywhere = claim(allocation=everywhere, devices=[DEVICE])
    assert await refused(anywhere, claim(allocation=everywhere), right, user=DRIVER) == ["status.devices"]


async def test_each_driver_is_asked_about() -> None:
    other = {**DEVICE, "driver": "a.example.com"}
    new, old = claim(allocation=ALLOCATION, devices=[DEVICE, other]), claim(allocation=ALLOCATION)
    assert await refused(new, old, "arbitrary-node:update driver ns/a.example.com") == ["status.devices"]
    assert await refused(new, old) == ["status.devices", "status.devices"]


async def test_what_is_told_of_a_claim_without_devices_is_not_looked_at() -> None:
    assert await refused(claim(devices=[DEVICE]), claim()) == []
