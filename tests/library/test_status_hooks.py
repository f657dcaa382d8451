"""Hooks for writes of the status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import steersman
from steersman import Request, Server, resource, version_of
from tests.library.requests import send

TOLD: list[tuple[str, str, str, int]] = []


class PumpSpec(msgspec.Struct):
    wanted: int = 1


class PumpStatus(msgspec.Struct):
    running: int = 0
    percent: int = 0


@resource("e.x/v1")
class Pump(msgspec.Struct):
    spec: PumpSpec = msgspec.field(default_factory=PumpSpec)
    status: PumpStatus | None = None

    @steersman.prepare(status=True)
    def fill(self, request: Request[Pump]) -> None:
        assert self.status is not None
        self.status.percent = 100 * self.status.running // self.spec.wanted
        self.spec.wanted = 77
        request.warn("percent filled in")

    @steersman.admit(status=True)
    async def allow(self, request: Request[Pump]) -> None:
        if self.status is not None and self.status.running > 9:
            raise request.forbid("too fast")

    @steersman.after_write
    @steersman.after_write(status=True)
    async def notify(self, request: Request[Pump]) -> None:
        running = 0 if self.status is None else self.status.running
        TOLD.append((request.operation, request.subresource, request.metadata.name, running))


class OldStatus(msgspec.Struct):
    speed: int = 0


@version_of(Pump, "v1alpha1")
class OldPump(msgspec.Struct):
    wanted: int = 1
    status: OldStatus | None = None

    def convert_to(self) -> Pump:
        return Pump(PumpSpec(self.wanted), None if self.status is None else PumpStatus(self.status.speed))

    @classmethod
    def convert_from(cls, hub: Pump) -> OldPump:
        return cls(hub.spec.wanted, None if hub.status is None else OldStatus(hub.status.running))


PUMPS = "/apis/e.x/v1/namespaces/default/pumps"
OLD = "/apis/e.x/v1alpha1/namespaces/default/pumps"
MERGE = "application/merge-patch+json"


@pytest.fixture
async def server(serve: Callable[..., Awaitable[Server]]) -> Server:
    server = await serve(Pump)
    body = {"apiVersion": "e.x/v1", "kind": "Pump", "metadata": {"name": "a"}, "spec": {"wanted": 4}}
    assert (await send(server, "POST", PUMPS, body)).status == 201
    TOLD.clear()
    return server


async def patch(server: Server, target: str, body: Any) -> Any:
    return await send(server, "PATCH", target, body, media=MERGE)


async def test_a_status_is_prepared_and_nothing_else_changes(server: Server) -> None:
    answer = await patch(server, f"{PUMPS}/a/status", {"status": {"running": 2}})
    body = answer.json()
    assert (body["status"], body["spec"]) == ({"running": 2, "percent": 50}, {"wanted": 4})
    assert "percent filled in" in answer.headers["warning"]
    assert body["metadata"]["generation"] == 1


async def test_a_status_may_be_refused(server: Server) -> None:
    refused = await patch(server, f"{PUMPS}/a/status", {"status": {"running": 10}})
    assert (refused.status, refused.json()["message"]) == (403, 'pumps.e.x "a" is forbidden: too fast')
    assert TOLD == []


async def test_writes_of_the_status_are_told_of_in_any_version(server: Server) -> None:
    await patch(server, f"{PUMPS}/a/status", {"status": {"running": 1}})
    await patch(server, f"{PUMPS}/a/status?dryRun=All", {"status": {"running": 3}})
    await patch(server, f"{OLD}/a/status", {"status": {"speed": 2}})
    assert TOLD == [("UPDATE", "status", "a", 1), ("UPDATE", "status", "a", 2)]
    assert (await send(server, "GET", f"{PUMPS}/a")).json()["status"]["running"] == 2


async def test_hooks_of_the_status_hear_of_nothing_else(server: Server) -> None:
    await patch(server, f"{PUMPS}/a", {"spec": {"wanted": 8}})
    await send(server, "DELETE", f"{PUMPS}/a")
    assert [each[:2] for each in TOLD] == [("UPDATE", ""), ("DELETE", "")]
