"""The condition Available and its effects."""

from __future__ import annotations

import asyncio

import pytest

from steersman.aggregator.availability import with_condition
from steersman.aggregator.remote_service import LOCAL, Condition
from steersman.api.apiregistration.v1 import APIService
from steersman.testing import Client
from tests.aggregator.extension_server import (
    API_SERVICES,
    NAME,
    ROOT,
    THINGS,
    ExtensionServer,
    add_endpoint,
    publish,
    register,
    response,
    until_reason,
)

SERVICE = "/api/v1/namespaces/default/services/things"


async def test_what_is_missing_is_told_one_after_the_other(client: Client, behind: ExtensionServer) -> None:
    await register(client, behind)
    found = await until_reason(client, "ServiceNotFound")
    assert (found["status"], found["message"]) == ("False", 'service/things in "default" is not present')
    body = {"metadata": {"name": "things"}, "spec": {"ports": [{"name": "http", "port": 80}]}}
    await client.post("/api/v1/namespaces/default/services", body)
    found = await until_reason(client, "ServicePortError")
    assert found["message"] == 'service/things in "default" is not listening on port 443'
    await client.patch(SERVICE, {"spec": {"ports": [{"name": "https", "port": 443}]}})
    found = await until_reason(client, "EndpointsNotFound")
    assert found["message"] == 'cannot find endpointslices for service/things in "default"'
    await add_endpoint(client, behind)
    slice_ = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/things-1"
    await client.patch(slice_, {"ports": [{"name": "other", "port": behind.port}]})
    found = await until_reason(client, "MissingEndpoints")
    assert found["message"] == 'endpointslices for service/things in "default" have no addresses with port name "https"'
    await client.patch(slice_, {"ports": [{"name": "https", "port": behind.port}]})
    found = await until_reason(client, "Passed")
    assert (found["status"], found["message"]) == ("True", "all checks passed")
    await client.delete(SERVICE)
    await until_reason(client, "ServiceNotFound")


async def test_who_asks_is_in_no_need_of_rights(things: Client, behind: ExtensionServer) -> None:
    request = [(each.first("x-remote-user"), each.first("x-remote-group")) for each in behind.requests_for(ROOT)]
    assert ("system:kube-aggregator", "system:masters") in request


@pytest.mark.parametrize("status", ["403 Forbidden", "302 Found", "503 Service Unavailable"])
async def test_a_server_that_refuses_its_list_is_not_available(
    client: Client, behind: ExtensionServer, status: str
) -> None:
    behind.paths[ROOT] = response("no", status)
    await publish(client, behind)
    found = await until_reason(client, "FailedDiscoveryCheck")
    url = f"https://{behind.host}:{behind.port}{ROOT}"
    assert found["message"] == f"failing or missing response from {url}: bad status from {url}: {status[:3]}"
    answer = await client.get(THINGS)
    assert (answer.status, answer.body) == (503, b"service unavailable\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_server_that_hangs_is_not_available(
    client: Client, behind: ExtensionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.aggregator.availability.TIMEOUT", 0.05)
    behind.held = asyncio.Event()
    await publish(client, behind)
    found = await until_reason(client, "FailedDiscoveryCheck")
    url = f"https://{behind.host}:{behind.port}{ROOT}"
    assert found["message"] == (
        f'failing or missing response from {url}: Get "{url}": context deadline exceeded '
        "(Client.Timeout exceeded while awaiting headers)"
    )
    behind.held.set()
    await until_reason(client, "Passed")


async def test_a_server_that_comes_back_is_found_again(things: Client, behind: ExtensionServer) -> None:
    await behind.stop()
    await things.patch(SERVICE, {"metadata": {"labels": {"a": "b"}}})  # it is looked at again
    await until_reason(things, "FailedDiscoveryCheck")
    await behind.start()
    await until_reason(things, "Passed")


async def test_one_that_becomes_local_is_available(things: Client) -> None:
    patch = {"spec": {"service": None, "caBundle": None}}
    assert (await things.patch(f"{API_SERVICES}/{NAME}", patch)).status == 200
    found = await until_reason(things, "Local")
    assert (found["status"], found["message"]) == (LOCAL.status, LOCAL.message)
    answer = await things.get(THINGS)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


async def test_what_others_write_of_it_is_put_right(things: Client) -> None:
    path = f"{API_SERVICES}/{NAME}/status"
    assert (await things.patch(path, {"status": {"conditions": []}})).status == 200
    await until_reason(things, "Passed")


@pytest.mark.asyncio(loop_scope="session")
async def test_its_metrics(own_things: Client) -> None:
    async def lines() -> list[str]:
        text = (await own_things.get("/metrics")).body.decode()
        return [line for line in text.splitlines() if f'name="{NAME}"' in line]

    assert await lines() == [f'aggregator_unavailable_apiservice{{name="{NAME}"}} 0']
    await own_things.delete(SERVICE)
    await until_reason(own_things, "ServiceNotFound")
    assert set(await lines()) == {
        f'aggregator_unavailable_apiservice{{name="{NAME}"}} 1',
        f'aggregator_unavailable_apiservice_total{{name="{NAME}",reason="ServiceNotFound"}} 1',
    }
    await own_things.delete(f"{API_SERVICES}/{NAME}")
    assert [line for line in await lines() if "_total" not in line] == []


def test_the_time_of_a_condition_is_that_of_its_status() -> None:
    service = with_condition(APIService(), Condition("False", "A", "a"))
    (first,) = service.status.conditions or []
    then = first.last_transition_time = "2020-01-01T00:00:00Z"
    (first,) = with_condition(service, Condition("False", "B", "b")).status.conditions
    assert (first.reason, first.message, first.last_transition_time) == ("B", "b", then)
    (first,) = with_condition(service, Condition("True", "C", "c")).status.conditions
    assert first.last_transition_time != then
