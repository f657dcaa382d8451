"""Waiting for objects, and the messages when they do not come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.testing import Environment, NotReached
from steersman.testing.waiting import blocking_until_true, find_resource

PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
EVENTS = "/api/v1/namespaces/default/events"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest_asyncio.fixture
async def environment(keys_folder: Path) -> AsyncIterator[Environment]:
    async with Environment(folder=keys_folder) as started:
        yield started


def event(name: str, about: str, message: str) -> dict[str, Any]:
    involved = {"kind": "Pod", "namespace": "default", "name": about}
    return {
        "metadata": {"name": name},
        "involvedObject": involved,
        "reason": "Tried",
        "message": message,
        "type": "Warning",
        "count": 2,
    }


async def test_an_object_is_waited_for_in_each_of_its_states(environment: Environment) -> None:
    client = environment.client()
    waiting = [
        asyncio.create_task(environment.wait_for("pods", "a", until))
        for until in ("create", "condition=ready", lambda pod: pod["metadata"].get("labels") == {"a": "b"})
    ]
    everybody = asyncio.create_task(environment.wait_for("po", until=lambda pods: len(pods) == 2))
    await client.post(PODS, POD)
    assert (await waiting[0])["metadata"]["name"] == "a"
    await client.patch(f"{PODS}/a/status", READY, media="application/strategic-merge-patch+json")
    await waiting[1]
    await client.patch(f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}})
    await waiting[2]
    await client.post(PODS, {**POD, "metadata": {"name": "b"}})
    assert [each["metadata"]["name"] for each in await everybody] == ["a", "b"]
    gone = asyncio.create_task(environment.wait_for("pod", "a", "delete"))
    await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert await gone is None


async def test_the_failure_tells_the_last_state_and_the_events_about_it(environment: Environment) -> None:
    client = environment.client()
    await client.post(PODS, POD)
    for number, (about, message) in enumerate([("a", "of it"), ("a-1", "of its own"), ("ab", "of another")]):
        assert (await client.post(EVENTS, event(f"e{number}", about, message))).status == 201
    with pytest.raises(NotReached) as error:
        await environment.wait_for("Pod", "a", "condition=Ready", timeout=0.05)
    text = str(error.value)
    assert text.startswith("pods/a in namespace default: not condition=Ready after 0.05 s\n\nlast state:\nkind: Pod\n")
    assert "managedFields" not in text
    assert text.endswith("events:\nWarning Tried (x2)  pod/a: of it\nWarning Tried (x2)  pod/a-1: of its own")


async def test_secrets_are_not_shown(environment: Environment) -> None:
    client = environment.client()
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
    body = {"metadata": {"name": "a", "annotations": annotations}, "stringData": {"password": "hunter2"}}
    assert (await client.post(SECRETS, body)).status == 201
    for name in ("a", ""):
        with pytest.raises(NotReached) as error:
            await environment.wait_for("secrets", name, lambda _: False, timeout=0)
        assert "password" in str(error.value)
        assert "hunter2" not in str(error.value)
        assert "aHVudGVy" not in str(error.value)


async def test_resources_are_named_as_for_kubectl(environment: Environment) -> None:
    for name, group, plural in (
        ("deploy", "apps", "deployments"),
        ("Deployment", "apps", "deployments"),
        ("cm", "", "configmaps"),
        ("events", "", "events"),
        ("events.events.k8s.io", "events.k8s.io", "events"),
    ):
        resource = find_resource(environment.plane, name)
        assert (resource.group, resource.resource.plural) == (group, plural)
    with pytest.raises(ValueError, match="no resource 'boats'"):
        await environment.wait_for("boats", "a")
    with pytest.raises(ValueError, match="none of create"):
        await environment.wait_for("pods", "a", "ready")


async def test_a_callable_is_called_until_it_gives_something(environment: Environment) -> None:
    given = iter([0, None, 3])

    async def soon() -> object:
        return next(given)

    assert await environment.wait_until(soon) == 3
    assert blocking_until_true(iter([0, "a"]).__next__, 5.0) == "a"
    with pytest.raises(NotReached, match=r"gave 0 for 0 s"):
        await environment.wait_until(lambda: 0, timeout=0)
    began = time.monotonic()
    with pytest.raises(NotReached, match=r"gave \[\] for 0.05 s"):
        blocking_until_true(list, 0.05)
    assert time.monotonic() - began < 5
