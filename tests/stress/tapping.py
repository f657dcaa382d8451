"""Taps of a server, and a client whose requests are their points."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any, Final

from steersman.net.in_process import ClientResponse
from steersman.stress.point import PlannedFault, Point
from steersman.stress.tap import Tap
from steersman.stress.touch import client_of, touch
from steersman.testing import Environment, User

PATH: Final = "/api/v1/namespaces/default/configmaps"
OPERATOR: Final = User("operator", ("system:masters",))


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def point(verb: str, name: str = "a", event: str = "", nth: int = 1) -> Point:
    return Point("manager", verb, "configmaps", "default", name, event, nth)


def tapped(environment: Environment, *faults: PlannedFault, **rest: Any) -> Tap:
    """Return the tap of a server, for the requests of the operator."""
    tap = Tap(
        faults,
        is_subject=lambda met: met.user == OPERATOR.name,
        touch=partial(touch, client_of(environment.plane)),
        **{"hold": 0.2, **rest},
    )
    environment.fault_set.interceptor = tap
    return tap


class Manager:
    """Client with the user agent of an operator."""

    def __init__(self, environment: Environment) -> None:
        self._client = environment.client(OPERATOR.name)

    async def code(self, method: str, path: str, body: Any = None) -> int:
        answer = await self._client.request(method, path, body, user_agent="manager/v1 (linux)")
        return answer.status

    async def get(self, path: str) -> Any:
        return (await self._client.request("GET", path, user_agent="manager/v1")).json()

    async def watch(self, revision: str = "") -> ClientResponse:
        target = f"{PATH}?watch=true&resourceVersion={revision}"
        return await self._client.open("GET", target, user_agent="manager/v1")


class Received:
    """Events of a watch, collected as they come."""

    def __init__(self, watch: ClientResponse) -> None:
        self.events: list[tuple[str, str]] = []
        self.has_ended = False
        self._task = asyncio.create_task(self._read(watch))

    async def _read(self, watch: ClientResponse) -> None:
        async for piece in watch:
            for line in piece.splitlines():
                event = json.loads(line)
                name = event["object"].get("metadata", {}).get("name", "") or str(event["object"].get("code", ""))
                self.events.append((event["type"], name))
        self.has_ended = True

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
