"""APIServices: required fields and initial status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.apiregistration.apiservices import API_SERVICES

GROUP = "apiregistration.k8s.io"


def service(name: str = "v1.a.example.com", **spec: Any) -> dict[str, Any]:
    full = {"group": "a.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
    return {"metadata": {"name": name}, "spec": full}


async def test_a_local_one_is_available_at_once(cluster: Callable[..., Any]) -> None:
    c = await cluster(API_SERVICES)
    made = await c.create("apiservices", service(), group=GROUP)
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")


async def test_priorities_have_bounds(cluster: Callable[..., Any]) -> None:
    c = await cluster(API_SERVICES)
    body = service(groupPriorityMinimum=20_001, versionPriority=0)
    assert await c.faults(c.create("apiservices", body, group=GROUP)) == [
        "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
        "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
    ]


async def test_another_server_has_a_port_and_no_condition_yet(cluster: Callable[..., Any]) -> None:
    c = await cluster(API_SERVICES)
    body = service(service={"namespace": "ns", "name": "s"}, insecureSkipTLSVerify=True)
    made = await c.create("apiservices", body, group=GROUP)
    assert made["spec"]["service"] == {"namespace": "ns", "name": "s", "port": 443}
    assert made["status"] == {}
