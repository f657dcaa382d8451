"""Faults of the requests to an aggregated server."""

from __future__ import annotations

import asyncio
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import Client, Environment
from steersman.testing.faults import Faults
from tests.aggregator.extension_server import NAME, THINGS, ExtensionServer, publish, response, until_reason


@pytest.fixture
def faults(things: Client) -> Faults:
    found = things.plane.embedding.faults
    assert found is not None
    return Faults(found)


@pytest.mark.parametrize(
    ("effect", "code", "text"),
    [
        ({"code": 500, "message": "no memory"}, 500, "no memory"),
        ({"refuse": True}, 503, "connect: connection refused"),
        ({"cut": True}, 503, "error trying to reach service: EOF"),
        ({"lose_answer": True}, 503, "error trying to reach service: EOF"),
        ({"garbage": True}, 200, "<h1>It works!</h1>"),
    ],
)
async def test_forwarded_requests_fail(
    things: Client, behind: ExtensionServer, faults: Faults, effect: dict[str, Any], code: int, text: str
) -> None:
    behind.paths[f"{THINGS}/a"] = response({"kind": "Thing"})
    with faults.add(api_service=NAME, **effect):
        answer = await things.get(f"{THINGS}/a")
        assert (answer.status, text in answer.body.decode()) == (code, True), answer.body
    assert (await things.get(f"{THINGS}/a")).json() == {"kind": "Thing"}


@pytest.mark.asyncio(loop_scope="session")
async def test_upgrades_fail(keys_folder: Path, behind: ExtensionServer) -> None:
    async with Environment(folder=keys_folder, listen=True) as environment:
        await publish(environment.client(), behind)
        await until_reason(environment.client(), "Passed")
        connection = HTTPSConnection(
            environment.url.removeprefix("https://"), context=ssl.create_default_context(cafile=str(environment.ca))
        )
        fields = {"Authorization": f"Bearer {environment.token()}", "Connection": "Upgrade", "Upgrade": "shout"}

        def ask() -> tuple[int, bytes]:
            connection.request("GET", f"{THINGS}/a/exec", headers=fields)
            with connection.getresponse() as answer:
                return answer.status, answer.read()

        with environment.faults.add(api_service="*", cut=True):
            assert await asyncio.to_thread(ask) == (503, b"error dialing backend: EOF\n")
        connection.close()
        assert behind.requests_for(f"{THINGS}/a/exec") == []


async def test_a_server_that_cannot_be_reached_is_unavailable(
    things: Client, behind: ExtensionServer, faults: Faults
) -> None:
    fault = faults.add(api_service=NAME, refuse=True)
    await things.patch(f"/apis/apiregistration.k8s.io/v1/apiservices/{NAME}", {"spec": {"versionPriority": 7}})
    await until_reason(things, "FailedDiscoveryCheck")
    assert (await things.get(THINGS)).body == b"service unavailable\n"
    fault.remove()
    await until_reason(things, "Passed")
