"""ResourceClaims: validation of their requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.core.namespaces import NAMESPACES
from steersman.registry.resource.resourceclaims import RESOURCE_CLAIMS

GROUP = "resource.k8s.io"
CLAIMS = "resourceclaims"


def claim(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests)}}}


async def test_a_request_is_for_one_device_and_stays_as_it_is(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_CLAIMS)
    made = await c.create(CLAIMS, claim({"name": "r", "exactly": {"deviceClassName": "gpu"}}), group=GROUP)
    (request,) = made["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    (fault,) = await c.faults(c.change(CLAIMS, "c", group=GROUP, devices={}))
    assert fault.startswith("spec: Invalid value: ")
    assert fault.endswith(": field is immutable")


async def test_a_request_has_a_name_of_its_own_and_a_class(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_CLAIMS)
    body = claim({"name": "r", "exactly": {}}, {"name": "r", "exactly": {"deviceClassName": "gpu"}})
    assert await c.faults(c.create(CLAIMS, body, group=GROUP)) == [
        "spec.devices.requests[0].exactly.deviceClassName: Required value",
        'spec.devices.requests[1]: Duplicate value: "r"',
    ]


async def test_devices_in_use_are_for_namespaces_labelled_so(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_CLAIMS, NAMESPACES)
    body = claim({"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}})
    await c.create("namespaces", {"metadata": {"name": "ns"}})
    assert await c.faults(c.create(CLAIMS, body, group=GROUP)) == [
        "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the "
        "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
    ]
    namespace = await c.get("namespaces", "ns")
    namespace["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    await c.update("namespaces", namespace)
    assert await c.create(CLAIMS, body, group=GROUP)
