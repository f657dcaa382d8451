"""Faults of a running cluster, made and removed through the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.cluster.fault_objects.definition import FAULTS, FaultObject
from steersman.controlplane.options import Options
from steersman.faults import fault_set
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from tests.controllers.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN = UserInfo("jane", groups=("system:masters",))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    folder: Path = tmp_path_factory.mktemp("faults")
    options = Options(data_dir=folder, storage="memory", listen=False, faults=True)
    cluster = Cluster(options, Configuration((), schedules=False))
    await cluster.start()
    try:
        yield cluster.client(ADMIN, "test")
    finally:
        await cluster.stop()


async def add(client: Client, name: str, **spec: Any) -> None:
    """Create a fault, and return once it is active or refused."""
    body = {
        "apiVersion": "simulation.steersman.dev/v1alpha1",
        "kind": "Fault",
        "metadata": {"name": name},
        "spec": spec,
    }
    await client.apply(FAULTS, name, "", body)
    await status_with(client, name, lambda status: bool(status.get("conditions")))


async def status_of(client: Client, name: str) -> dict[str, Any]:
    found: FaultObject = await client.get(FAULTS, name)
    return found.status or {}


async def status_with(client: Client, name: str, has: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the status of a fault once it is as wanted."""

    async def look() -> dict[str, Any] | None:
        status = await status_of(client, name)
        return status if has(status) else None

    found = await eventually(look)
    assert found is not None
    return found


def active(status: dict[str, Any]) -> tuple[str, str]:
    """Return status and reason of the condition Active."""
    (condition,) = status["conditions"]
    return condition["status"], condition["reason"]


async def create(client: Client, name: str) -> int:
    """Create a ConfigMap, and return the status code."""
    try:
        await client.request("POST", CONFIG_MAPS.path("default"), b'{"metadata":{"name":"%s"}}' % name.encode())
    except StatusError as error:
        return error.code
    return 201


async def test_a_fault_hits_requests_and_counts_them(client: Client) -> None:
    await add(
        client,
        "conflict",
        match={"resources": ["configmaps"], "users": ["jane"]},
        when={"skip": 1, "times": 2},
        effect={"status": {"code": 409}},
    )
    assert active(await status_of(client, "conflict")) == ("True", "Injecting")
    assert [await create(client, f"a{number}") for number in range(4)] == [201, 409, 409, 201]
    status = await status_with(client, "conflict", lambda status: status.get("matched") == 4)
    assert (status["injected"], active(status)) == (2, ("False", "Exhausted"))
    hit = {"user": "jane", "verb": "create", "resource": "configmaps", "namespace": "default", "name": ""}
    assert [{**each, "time": ""} for each in status["last"]] == [{**hit, "time": ""}] * 2
    await client.delete(FAULTS, "conflict")


async def test_a_fault_ends_with_its_object(client: Client) -> None:
    await add(
        client, "always", match={"verbs": ["create"], "namespaces": ["default"]}, effect={"status": {"code": 503}}
    )
    assert await create(client, "b") == 503
    await client.delete(FAULTS, "always")

    async def works() -> bool:
        return await create(client, "b") == 201

    assert await eventually(works)


async def test_long_paths_of_requests_are_cut_in_the_status(client: Client) -> None:
    await add(client, "long", match={"users": ["jane"], "verbs": ["get"]}, effect={"status": {"code": 418}})
    long = "x" * 400_000
    for path in (f"namespaces/{long}/pods/{long}", f"namespaces/default/{long}/{long}/{long}") * 5:
        with pytest.raises(StatusError, match="injected fault: 418"):
            await client.request("GET", f"/api/v1/{path}")
    status = await status_with(client, "long", lambda status: status.get("injected") == 10)
    assert {len(each["namespace"]) for each in status["last"]} == {253, len("default")}
    assert max(len(text) for each in status["last"] for text in each.values()) == 253
    await client.delete(FAULTS, "long")


async def test_a_fault_that_is_one_too_many_begins_once_there_are_fewer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_set, "MOST_FAULTS", 2)
    effect = {"status": {"code": 409}}
    for name in ("first", "second", "third", "fourth"):
        await add(client, name, match={"users": ["nobody"]}, effect=effect)
    for name in ("third", "fourth"):
        status = await status_of(client, name)
        assert active(status) == ("False", "InvalidSpec")
        assert status["conditions"][0]["message"] == "there are 2 faults already"
    await client.delete(FAULTS, "second")
    await status_with(client, "third", lambda status: active(status) == ("True", "Injecting"))
    await add(client, "first", match={"users": ["nobody"]}, when={"for": "1ms"}, effect=effect)
    await status_with(client, "fourth", lambda status: active(status) == ("True", "Injecting"))
    for name in ("first", "third", "fourth"):
        await client.delete(FAULTS, name)


async def test_a_fault_of_all_requests_can_be_removed(client: Client) -> None:
    await add(client, "all", effect={"status": {"code": 500}})
    with pytest.raises(StatusError, match="injected fault"):
        await client.list(CONFIG_MAPS, "default")
    await client.delete(FAULTS, "all")

    async def works() -> bool:
        try:
            await client.list(CONFIG_MAPS, "default")
        except StatusError:
            return False
        return True

    assert await eventually(works)


async def test_a_fault_that_says_two_things_at_once_is_not_active(client: Client) -> None:
    await add(client, "both", effect={"cut": True, "loseAnswer": True})
    status = await status_of(client, "both")
    assert active(status) == ("False", "InvalidSpec")
    assert status["conditions"][0]["message"] == "effect: only one of status, cut, loseAnswer, hang, garbage and refuse"
    await add(client, "both", effect={"status": {"code": 409}}, match={"names": ["nobody"]})
    await status_with(client, "both", lambda status: active(status) == ("True", "Injecting"))


async def test_a_resource_that_is_not_served_is_told_of(client: Client) -> None:
    effect = {"status": {"code": 500}}
    await add(client, "typo", match={"resources": ["widgets.example.com", "pods", "*/x"]}, effect=effect)
    message = "match.resources: 'widgets.example.com' is not served"
    await status_with(client, "typo", lambda status: status["conditions"][0]["message"] == message)
    assert active(await status_of(client, "typo")) == ("True", "Injecting")
    await add(client, "typo", match={"resources": ["configmap"]}, effect=effect)
    message = "match.resources: 'configmap' is not served, did you mean 'configmaps'?"
    await status_with(client, "typo", lambda status: status["conditions"][0]["message"] == message)
    await add(client, "typo", match={"resources": ["configmaps"], "names": ["nobody"]}, effect=effect)
    await status_with(client, "typo", lambda status: not status["conditions"][0]["message"])


async def test_faults_of_parts_that_a_cluster_lacks_say_so(client: Client) -> None:
    await add(client, "leap", when={"times": 1}, effect={"clock": {"advance": "1h"}})
    status = await status_of(client, "leap")
    assert active(status) == ("False", "InvalidSpec")
    assert status["conditions"][0]["message"].startswith("effect.clock: this server has no clock of its own")
    await client.delete(FAULTS, "leap")


async def test_a_request_moves_the_clock(tmp_path: Path) -> None:
    cluster = Cluster(
        Options(data_dir=tmp_path, storage="memory", listen=False, faults=True), Configuration(()), owns_process=True
    )
    await cluster.start()
    try:
        client = cluster.client(ADMIN, "test")
        match = {"resources": ["configmaps"], "users": ["jane"], "verbs": ["create"]}
        await add(client, "leap", match=match, when={"times": 1, "skip": 1}, effect={"clock": {"advance": "1h"}})
        began = times.unix_now()
        assert [await create(client, "a"), await create(client, "b")] == [201, 201]

        async def has_leapt() -> bool:
            return times.unix_now() - began > 3600

        await eventually(has_leapt)
        assert await create(client, "c") == 201
        assert times.unix_now() - began < 3700
    finally:
        await cluster.stop()


@pytest.mark.parametrize(
    "spec",
    [
        {"effect": {"status": {"code": 200}}},
        {"effect": {"status": {"code": 409, "message": "x" * 1025}}},
        {"effect": {"delay": {"before": "soon"}}},
        {"effect": {"cut": True}, "when": {"probability": 2}},
        {"effect": {"cut": True}, "when": {"skip": -1}},
        {"effect": {"cut": True}, "match": {"names": ["a" * 254]}},
        {"effect": {"cut": True}, "match": {"names": ["a"] * 65}},
        {"effect": {"cut": True}, "match": {"webhooks": ["a"] * 65}},
        {"effect": {"node": {"delay": "later"}}, "match": {"nodes": ["a"]}},
        {},
    ],
)
async def test_bounds_are_those_of_the_definition(client: Client, spec: dict[str, Any]) -> None:
    body = {"apiVersion": "simulation.steersman.dev/v1alpha1", "kind": "Fault", "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(StatusError) as refused:
        await client.apply(FAULTS, "x", "", body)
    assert refused.value.code == 422


async def test_a_stored_fault_of_all_requests_does_not_keep_the_cluster_from_starting(tmp_path: Path) -> None:
    await _run_with_fault(tmp_path, is_new=True)
    await _run_with_fault(tmp_path, is_new=False)


async def _run_with_fault(folder: Path, *, is_new: bool) -> None:
    """Start and stop a cluster with a fault of all requests, which is stored if it is not new."""
    cluster = Cluster(Options(data_dir=folder, listen=False, faults=True), Configuration(()))
    await cluster.start()
    try:
        client = cluster.client(ADMIN, "test")

        async def is_hit() -> bool:
            return await create(client, "hit") == 500

        if is_new:
            await add(client, "all", effect={"status": {"code": 500}})
        await eventually(is_hit)
    finally:
        await cluster.stop()
