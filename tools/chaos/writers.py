"""Writers who fight over few objects, and readers among them; everything goes into a history."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from tools.chaos.asking import Answer, Asker, NoAnswer, Violation
from tools.chaos.history import OK, UNKNOWN, History, Operation

NAMESPACE: Final = "chaos"
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_KEYS: Final = 4
_SECONDS: Final = 8.0
"""After so long all write to other objects: a history of one must be short enough to be judged."""
_SERVER_ERROR: Final = 500
REFUSED: Final = frozenset({401, 429})
"""Nothing was done: there is no room, or a server whose clock jumped finds that the certificate of its client is not
valid yet."""
_OUTCOMES: Final = {200: OK, 201: OK, 404: "missing"}


class Writer:
    """Does one thing after another, most of which somebody else is doing too."""

    def __init__(self, asker: Asker, history: History) -> None:
        self._asker = asker
        self._chance = asker.chance
        self._history = history
        self._client = history.new_client()
        self._known: dict[str, int] = {}
        """The last version that was seen of each object."""
        self._number = 0
        self.cached: list[tuple[str, str, int]] = []
        """Results of reads of some past state: key, value, version."""

    async def run(self, pause: float, stop: asyncio.Event) -> None:
        """Raises Violation."""
        while not stop.is_set():
            epoch = int(time.monotonic() / _SECONDS)
            key = f"k{epoch}-{self._chance.randrange(_KEYS)}"
            step = self._chance.choices(
                (self._read, self._list, self._read_cached, self._create, self._update, self._delete),
                (6, 1, 1, 3, 6, 2),
            )[0]
            await step(key)
            await asyncio.sleep(self._chance.expovariate(1 / pause))

    # Reading

    async def _read(self, key: str) -> None:
        answer = await self._asker.ask("GET", f"{PATH}/{key}")
        if isinstance(answer, NoAnswer) or answer.status not in (200, 404):
            self._check(answer, "GET")
            return
        self._found(key, answer.body if answer.status == 200 else None, answer)

    async def _list(self, key: str) -> None:
        """All of them at once, which is a read of each."""
        answer = await self._asker.ask("GET", PATH)
        if isinstance(answer, NoAnswer) or answer.status != 200:
            self._check(answer, "LIST")
            return
        there = {each["metadata"]["name"]: each for each in answer.body["items"]}
        epoch = key.partition("-")[0]
        for number in range(_KEYS):
            each = f"{epoch}-{number}"
            self._found(each, there.get(each), answer)

    def _found(self, key: str, body: Any, answer: Answer) -> None:
        version, value = (0, "") if body is None else (version_of(body), value_of(body))
        if body is not None:
            self._known[key] = version
        self._add(key, "read", value, 0, OK if body is not None else "missing", version, answer)

    async def _read_cached(self, key: str) -> None:
        answer = await self._asker.ask("GET", f"{PATH}/{key}?resourceVersion=0")
        if isinstance(answer, Answer) and answer.status == 200:
            self.cached.append((key, value_of(answer.body), version_of(answer.body)))
        elif isinstance(answer, NoAnswer) or answer.status != 404:
            self._check(answer, "GET")

    # Writing

    def _value(self) -> str:
        self._number += 1
        return f"{self._client}.{self._number}"

    async def _create(self, key: str) -> None:
        value = self._value()
        answer = await self._asker.ask("POST", PATH, config_map(key, value))
        self._written(key, "create", value, 0, answer, {409: "exists"})

    async def _update(self, key: str) -> None:
        expected, value = self._known.get(key), self._value()
        if expected is None:
            await self._read(key)
            return
        answer = await self._asker.ask("PUT", f"{PATH}/{key}", config_map(key, value, expected))
        self._written(key, "update", value, expected, answer, {409: "conflict"})

    async def _delete(self, key: str) -> None:
        expected = self._known.get(key)
        if expected is None:
            await self._read(key)
            return
        options = {"preconditions": {"resourceVersion": str(expected)}}
        answer = await self._asker.ask("DELETE", f"{PATH}/{key}", options)
        self._written(key, "delete", "", expected, answer, {409: "conflict"})

    def _written(
        self, key: str, verb: str, value: str, expected: int, answer: Answer | NoAnswer, meanings: dict[int, str]
    ) -> None:
        if isinstance(answer, NoAnswer) or answer.status >= _SERVER_ERROR:
            self._add(key, verb, value, expected, UNKNOWN, 0, answer)
            return
        if answer.status in REFUSED:
            return
        outcome = (_OUTCOMES | meanings).get(answer.status)
        if outcome is None:
            raise Violation(f"{verb} of {key} was answered {answer.status}: {answer.body}")
        version = 0
        if outcome == OK and verb != "delete":
            version = self._known[key] = version_of(answer.body)
            if value_of(answer.body) != value:
                raise Violation(f"{verb} of {key} with {value} was answered with {answer.body}")
        self._add(key, verb, value, expected, outcome, version, answer)

    def _add(
        self, key: str, verb: str, value: str, expected: int, outcome: str, version: int, answer: Answer | NoAnswer
    ) -> None:
        ended = answer.ended if isinstance(answer, Answer) and outcome != UNKNOWN else 0
        client = self._client
        if outcome == UNKNOWN:
            self._client = self._history.new_client()  # the old one is still at it, for all that is known
        self._history.operations.append(
            Operation(key, client, verb, value, expected, outcome, version, answer.began, ended)
        )

    @staticmethod
    def _check(answer: Answer | NoAnswer, verb: str) -> None:
        """A read may fail, in ways that are known."""
        if isinstance(answer, Answer) and answer.status not in REFUSED and answer.status < _SERVER_ERROR:
            raise Violation(f"{verb} was answered {answer.status}: {answer.body}")


def config_map(name: str, value: str, version: int = 0) -> dict[str, Any]:
    metadata = {"name": name, **({"resourceVersion": str(version)} if version else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def version_of(body: Any) -> int:
    return int(body["metadata"]["resourceVersion"])


def value_of(body: Any) -> str:
    return str(body.get("data", {}).get("value", ""))
