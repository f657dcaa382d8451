"""Requests to one of several servers, with an outcome that may stay unknown."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tools.soak.http_client import ConnectionLost, Endpoint, Http1Client, Response, read

GIVES_UP: Final = 10.0
"""Seconds after which a client goes its way: it does not know then what came of its request."""
_MOST_SECONDS: Final = 75.0
"""A server has to have answered by then, whatever becomes of its etcd: it bounds each request to a minute."""


class Violation(Exception):
    """Something was promised and is not so."""


@dataclass(frozen=True)
class Answer:
    """An answer of a server and its time, in nanoseconds of one clock."""

    status: int
    body: Any
    began: int
    ended: int


@dataclass(frozen=True)
class NoAnswer:
    """Nobody knows what came of it."""

    began: int


class Asker:
    """One client with a connection to each server, used one after another."""

    def __init__(self, endpoints: Sequence[Endpoint], counts: Counter[str], chance: random.Random) -> None:
        self.chance = chance
        self.counts = counts
        self._clients = [Http1Client(endpoint) for endpoint in endpoints]

    async def ask(
        self, method: str, target: str, body: object = None, *, seconds: float = GIVES_UP
    ) -> Answer | NoAnswer:
        """Asks any of the servers."""
        client = self.chance.choice(self._clients)
        data = b"" if body is None else orjson.dumps(body)
        began = time.monotonic_ns()
        try:
            async with asyncio.timeout(seconds):
                response = await client.request(method, target, data, content_type="application/json")
                data = await read(response)
        except (ConnectionLost, TimeoutError, OSError):
            self.counts["requests without an answer"] += 1
            return NoAnswer(began)
        try:
            answer = orjson.loads(data)
        except ValueError:
            raise Violation(
                f"{method} {target} was answered {response.status} with what is no JSON: {data!r}"
            ) from None
        ended = time.monotonic_ns()
        self.counts[f"answers {response.status}"] += 1
        if response.status >= 500:
            self.counts[f"  {response.status} {answer.get('message', '')[:100]}"] += 1
        return Answer(response.status, answer, began, ended)

    async def watch(self, target: str) -> Response:
        """Raises ConnectionLost."""
        client = self.chance.choice(self._clients)
        try:
            async with asyncio.timeout(GIVES_UP):
                return await client.request("GET", target)
        except (TimeoutError, OSError) as error:
            raise ConnectionLost(str(error)) from error

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


async def be_patient(asker: Asker, target: str, longest: list[float]) -> None:
    """Writes, and waits for every answer, until cancelled. Raises Violation if one takes too long."""
    number = 0
    while True:
        number += 1
        began = time.monotonic()
        body = {"metadata": {"name": f"patient-{asker.chance.randbytes(6).hex()}"}}
        answer = await asker.ask("POST", target, body, seconds=_MOST_SECONDS)
        took = time.monotonic() - began
        longest[0] = max(longest[0], took)
        if isinstance(answer, NoAnswer) and took >= _MOST_SECONDS:
            raise Violation(f"POST {target} was not answered in {took:.0f} s")
        await asyncio.sleep(asker.chance.uniform(0.1, 1.0))
