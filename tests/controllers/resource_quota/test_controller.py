"""Tests of the quota controller."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import ResourceQuota
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
)
from steersman.controllers.resource_quota import controller as controller_module
from steersman.controllers.resource_quota.controller import ResourceQuotaController
from steersman.machinery.codec.serializer import from_plain, to_plain
from tests.controllers.waiting import Run, eventually

Plain = dict[str, Any]

DEFINITIONS = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
WIDGETS = APIResource("example.com", "v1", "widgets", "Widget", dict)


async def make(client: Client, resource: APIResource[Any], name: str, **parts: Any) -> None:
    plain = {"metadata": {"name": name, "namespace": "default"}, **parts}
    await client.create(resource, plain if resource.type is dict else from_plain(resource.type, plain), "default")


async def limit(client: Client, name: str, hard: dict[str, str], **spec: Any) -> None:
    await make(client, RESOURCE_QUOTAS, name, spec={"hard": hard, **spec})


async def used(client: Client, name: str) -> dict[str, str]:
    return (await client.get(RESOURCE_QUOTAS, name, "default")).status.used


async def wait_for_usage(client: Client, name: str, expected: dict[str, str]) -> None:
    async def is_expected() -> bool:
        return await used(client, name) == expected

    try:
        await eventually(is_expected, seconds=10)
    except TimeoutError:
        assert await used(client, name) == expected


def pod(cpu: str = "", **spec: Any) -> Plain:
    container: Plain = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return {"spec": {"containers": [container], **spec}}


async def test_what_is_there_counts_and_what_goes_is_given_back(run: Run) -> None:
    client = await run()
    await make(client, PODS, "a", **pod("500m"))
    await make(client, PODS, "b", **pod("1"))
    await make(client, SERVICES, "s", spec={"type": "NodePort", "ports": [{"port": 1}]})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "gold",
    }
    await make(client, PERSISTENT_VOLUME_CLAIMS, "v", spec=claim)
    await make(client, SECRETS, "x")
    device = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    await make(client, RESOURCE_CLAIMS, "d", spec={"devices": {"requests": [device]}})
    hard = {
        "pods": "10",
        "requests.cpu": "10",
        "requests.memory": "10Gi",
        "services": "5",
        "services.nodeports": "2",
        "services.loadbalancers": "2",
        "gold.storageclass.storage.k8s.io/requests.storage": "10Gi",
        "secrets": "10",
        "count/secrets": "10",
        "count/deployments.apps": "10",
        "gpu.deviceclass.resource.k8s.io/devices": "5",
        "example.com/unknown.thing": "1",
    }
    await limit(client, "q", hard)
    await run(ResourceQuotaController)
    expected = {
        "pods": "2",
        "requests.cpu": "1500m",
        "requests.memory": "2Gi",
        "services": "2",
        "services.nodeports": "1",
        "services.loadbalancers": "0",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "secrets": "1",
        "count/secrets": "1",
        "count/deployments.apps": "0",
        "gpu.deviceclass.resource.k8s.io/devices": "1",
    }
    await wait_for_usage(client, "q", expected)
    assert (await client.get(RESOURCE_QUOTAS, "q", "default")).status.hard == hard
    await client.delete(PODS, "a", "default")
    await client.delete(SECRETS, "x", "default")
    await client.delete(SERVICES, "s", "default")
    await client.delete(RESOURCE_CLAIMS, "d", "default")
    await wait_for_usage(
        client,
        "q",
        expected
        | {
            "pods": "1",
            "requests.cpu": "1",
            "requests.memory": "1Gi",
            "secrets": "0",
            "count/secrets": "0",
            "services": "1",
            "services.nodeports": "0",
            "gpu.deviceclass.resource.k8s.io/devices": "0",
        },
    )


async def test_a_pod_that_has_ended_gives_back_what_it_had(run: Run) -> None:
    client = await run(ResourceQuotaController)
    await limit(client, "q", {"pods": "1", "count/pods": "10"})
    await wait_for_usage(client, "q", {"pods": "0", "count/pods": "0"})
    await make(client, PODS, "a", **pod())
    assert await used(client, "q") == {"pods": "1", "count/pods": "1"}
    await client.patch(PODS, "a", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
    await wait_for_usage(client, "q", {"pods": "0", "count/pods": "1"})


async def test_scopes(run: Run) -> None:
    client = await run()
    await make(client, PODS, "a", **pod("1"))
    await make(client, PODS, "b", **pod(activeDeadlineSeconds=5))
    await make(client, CONFIG_MAPS, "m")
    await limit(client, "ending", {"pods": "5"}, scopes=["Terminating"])
    await limit(client, "lasting", {"pods": "5", "requests.cpu": "5"}, scopes=["NotTerminating"])
    await limit(client, "best-effort", {"pods": "5"}, scopes=["BestEffort"])
    important = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    await limit(client, "important", {"pods": "5"}, scopeSelector={"matchExpressions": [important]})
    await run(ResourceQuotaController)
    await wait_for_usage(client, "ending", {"pods": "1"})
    await wait_for_usage(client, "lasting", {"pods": "1", "requests.cpu": "1"})
    await wait_for_usage(client, "best-effort", {"pods": "1"})
    await wait_for_usage(client, "important", {"pods": "0"})
    await client.patch(PODS, "a", "default", {"spec": {"activeDeadlineSeconds": 10}})
    await wait_for_usage(client, "ending", {"pods": "2"})
    await wait_for_usage(client, "lasting", {"pods": "0", "requests.cpu": "0"})


async def test_custom_resources_are_counted_once_they_are_defined(run: Run) -> None:
    client = await run(ResourceQuotaController)
    await limit(client, "q", {"count/widgets.example.com": "2"})
    names = {"plural": "widgets", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    await client.create(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    await wait_for_usage(client, "q", {"count/widgets.example.com": "0"})
    await make(client, WIDGETS, "w")
    assert await used(client, "q") == {"count/widgets.example.com": "1"}
    await client.delete(WIDGETS, "w", "default")
    await wait_for_usage(client, "q", {"count/widgets.example.com": "0"})


async def test_what_is_limited_may_change_and_nothing_is_written_without_need(run: Run) -> None:
    client = await run(ResourceQuotaController)
    await limit(client, "q", {"configmaps": "5", "secrets": "5"})
    await wait_for_usage(client, "q", {"configmaps": "0", "secrets": "0"})
    await client.patch(RESOURCE_QUOTAS, "q", "default", {"spec": {"hard": {"secrets": None, "configmaps": "7"}}})
    await wait_for_usage(client, "q", {"configmaps": "0"})

    async def settled() -> ResourceQuota | None:
        resource_quota = await client.get(RESOURCE_QUOTAS, "q", "default")
        return resource_quota if resource_quota.status.hard == {"configmaps": "7"} else None

    before = await eventually(settled)
    await client.patch(RESOURCE_QUOTAS, "q", "default", {"metadata": {"labels": {"a": "b"}}})
    for name in ("x", "y"):
        await make(client, PODS, name, **pod())
        await client.delete(PODS, name, "default")
    after = await client.get(RESOURCE_QUOTAS, "q", "default")
    assert to_plain(after.status) == to_plain(before.status)
    managers = {(each.manager, each.subresource) for each in after.metadata.managed_fields}
    assert managers == {("tests", ""), ("kube-controller-manager", "status")}


async def test_what_was_summed_up_while_something_was_made_is_put_right(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Admission has charged the object, but it did not exist yet when the usage was summed up."""
    monkeypatch.setattr(controller_module, "QUIET", 0.3)
    client = await run(ResourceQuotaController)
    await limit(client, "q", {"configmaps": "10"})
    await wait_for_usage(client, "q", {"configmaps": "0"})
    await make(client, CONFIG_MAPS, "a")
    await wait_for_usage(client, "q", {"configmaps": "1"})
    await client.patch(RESOURCE_QUOTAS, "q", "default", {"status": {"used": {"configmaps": "0"}}}, subresource="status")
    assert await used(client, "q") == {"configmaps": "0"}
    await wait_for_usage(client, "q", {"configmaps": "1"})
