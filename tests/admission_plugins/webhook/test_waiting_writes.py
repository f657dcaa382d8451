"""Tests of writes that a mutating webhook delays: labels of their namespace that are set meanwhile count."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.testing import Answer, Client
from tests.admission_plugins.webhook.admission_hook import MUTATING, VALIDATING, AdmissionHook, configure, deny

NAMESPACE = "/api/v1/namespaces/labelled"
ENFORCE = {"pod-security.kubernetes.io/enforce": "baseline"}
POD = {"metadata": {"name": "p"}, "spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]}}
CONFIG_MAP = {"metadata": {"name": "c"}}


async def label_while_held(client: Client, hook: AdmissionHook, write: Any, labels: dict[str, str]) -> Answer:
    """Label the namespace while the webhook holds a write, then let the write continue. Return its answer."""
    hook.held = asyncio.Event()
    written = asyncio.ensure_future(write)
    await hook.asked(len(hook.heads) + 1)
    assert (await client.patch(NAMESPACE, {"metadata": {"labels": labels}})).status == 200
    hook.held.set()
    answer: Answer = await written
    return answer


@pytest.fixture
def mutating(hook: AdmissionHook) -> dict[str, Any]:
    return hook.webhook("/slow", "pods", "configmaps")


async def test_pod_security_that_is_enforced_meanwhile_refuses_the_pod(
    client: Client, hook: AdmissionHook, mutating: dict[str, Any]
) -> None:
    assert (await client.post("/api/v1/namespaces", {"metadata": {"name": "labelled"}})).status == 201
    await configure(client, MUTATING, mutating)
    refused = await label_while_held(client, hook, client.post(f"{NAMESPACE}/pods", POD), ENFORCE)
    assert refused.status == 403
    assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in refused.json()["message"]
    assert (await client.get(f"{NAMESPACE}/pods/p")).status == 404


@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
async def test_a_webhook_whose_selector_matches_meanwhile_is_called(
    client: Client, hook: AdmissionHook, mutating: dict[str, Any], is_new: bool
) -> None:
    assert (await client.post("/api/v1/namespaces", {"metadata": {"name": "labelled"}})).status == 201
    if not is_new:
        assert (await client.post(f"{NAMESPACE}/configmaps", CONFIG_MAP)).status == 201
    hook.answers["/deny"] = deny
    selected = {"namespaceSelector": {"matchLabels": {"guarded": "true"}}}
    await configure(client, MUTATING, mutating)
    await configure(client, VALIDATING, hook.webhook("/deny", "configmaps", **selected))
    if is_new:
        write = client.post(f"{NAMESPACE}/configmaps", CONFIG_MAP)
    else:
        write = client.put(f"{NAMESPACE}/configmaps/c", CONFIG_MAP | {"data": {"a": "b"}})
    refused = await label_while_held(client, hook, write, {"guarded": "true"})
    assert (refused.status, hook.paths) == (400, ["/slow", "/deny"])
