"""Events that have hours to live: each that was acknowledged has to be there in the end, whatever clocks have said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from tools.chaos.asking import Answer, Asker, Violation
from tools.chaos.writers import NAMESPACE, REFUSED

EVENTS: Final = f"/api/v1/namespaces/{NAMESPACE}/events"
TTL_FLAG: Final = "--event-ttl=5h"
"""Longer than a run, and than a clock jumps."""
_RATE: Final = 1.0
"""Events a second, at most."""


class Keeper:
    """Writes events and keeps in mind which."""

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker = asker
        self._name = name
        self.kept: list[str] = []
        """The names of those that were acknowledged."""

    async def run(self, stop: asyncio.Event) -> None:
        """Raises Violation."""
        number = 0
        while not stop.is_set():
            number += 1
            name = f"{self._name}-{number}"
            answer = await self._asker.ask("POST", EVENTS, event(name))
            if isinstance(answer, Answer) and answer.status == 201:
                self.kept.append(name)
                self._asker.counts["events kept"] += 1
            elif isinstance(answer, Answer) and answer.status < 500 and answer.status not in REFUSED:
                raise Violation(f"an event was answered {answer.status}: {answer.body}")
            await asyncio.sleep(self._asker.chance.expovariate(_RATE))


def event(name: str) -> dict[str, Any]:
    involved = {"kind": "Namespace", "name": NAMESPACE, "namespace": NAMESPACE}
    return {"metadata": {"name": name}, "involvedObject": involved, "reason": "Chaos", "message": name}


def lost(items: Iterable[Any], kept: Iterable[str]) -> list[str]:
    """Return acknowledged objects that do not exist."""
    there = {each["metadata"]["name"] for each in items}
    return [f"the event {name} was made, has hours to live, and is not there" for name in kept if name not in there]
