"""Services that take addresses and ports out of small ranges: nothing is given to two at a time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from tools.chaos.asking import Answer, Asker, Violation
from tools.chaos.writers import NAMESPACE, REFUSED

SERVICES: Final = f"/api/v1/namespaces/{NAMESPACE}/services"
FLAGS: Final = ("--service-cluster-ip-range=10.77.0.0/26", "--service-node-port-range=31000-31023")
_FULL: Final = ("range is full", "provided port is already allocated", "failed to allocate")
_MOST: Final = 6
"""Services of one allocator."""


@dataclass
class Holding:
    """A service that has been acknowledged, from then until its deletion was begun, in nanoseconds."""

    name: str
    things: tuple[str, ...]
    """Its addresses and ports."""
    first: int
    last: float = inf


class Allocator:
    """Makes services and deletes them."""

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker = asker
        self._name = name
        self._number = 0
        self._doubtful: list[str] = []
        """Services that may exist."""
        self.holdings: list[Holding] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Raises Violation."""
        while not stop.is_set():
            held = [each for each in self.holdings if each.last == inf]
            if self._doubtful and self._asker.chance.random() < 0.3:
                await self._delete(self._doubtful[0], None)
            elif len(held) >= _MOST or (held and self._asker.chance.random() < 0.4):
                holding = self._asker.chance.choice(held)
                await self._delete(holding.name, holding)
            else:
                await self._create()
            await asyncio.sleep(self._asker.chance.expovariate(1 / 0.2))

    async def _create(self) -> None:
        self._number += 1
        name = f"{self._name}-{self._number}"
        spec = {"type": "NodePort", "ports": [{"port": 80}], "selector": {"a": "b"}}
        answer = await self._asker.ask("POST", SERVICES, {"metadata": {"name": name}, "spec": spec})
        if isinstance(answer, Answer) and answer.status == 201:
            self.holdings.append(Holding(name, things_of(answer.body), answer.ended))
            self._asker.counts["services made"] += 1
        elif isinstance(answer, Answer) and answer.status < 500 and answer.status not in REFUSED:
            if not any(each in answer.body.get("message", "") for each in _FULL):
                raise Violation(f"a service was answered {answer.status}: {answer.body}")
        elif not isinstance(answer, Answer) or answer.status >= 500:
            self._doubtful.append(name)

    async def _delete(self, name: str, holding: Holding | None) -> None:
        answer = await self._asker.ask("DELETE", f"{SERVICES}/{name}")
        if holding is not None:
            holding.last = min(holding.last, answer.began)
            if isinstance(answer, Answer) and answer.status == 404:
                raise Violation(f"the service {name} was made, and is not there")
        if isinstance(answer, Answer) and answer.status in (200, 404):
            if name in self._doubtful:
                self._doubtful.remove(name)
        elif name not in self._doubtful:
            self._doubtful.append(name)


def things_of(service: Any) -> tuple[str, ...]:
    """Addresses and ports that a service has for itself."""
    spec = service["spec"]
    addresses = [each for each in spec.get("clusterIPs") or [spec.get("clusterIP", "")] if each not in ("", "None")]
    return (*addresses, *(f"port {each['nodePort']}" for each in spec.get("ports", ()) if each.get("nodePort")))


def given_twice(holdings: Iterable[Holding]) -> list[str]:
    """Return a line for each address or port that two services had at the same time."""
    by_thing: defaultdict[str, list[Holding]] = defaultdict(list)
    for holding in holdings:
        for thing in holding.things:
            by_thing[thing].append(holding)
    found = []
    for thing, users in by_thing.items():
        users.sort(key=lambda holding: holding.first)
        last = users[0]
        for each in users[1:]:
            if each.first < last.last:
                found.append(f"{thing} was given to {last.name} and to {each.name}")
            if each.last > last.last:
                last = each
    return found


def there(services: Iterable[Any], holdings: Iterable[Holding]) -> list[str]:
    """Return the faults of the services at the end: addresses or ports that two of them have, and lost services."""
    found = []
    owners: dict[str, str] = {}
    by_name = {}
    for service in services:
        name = service["metadata"]["name"]
        by_name[name] = things_of(service)
        for thing in by_name[name]:
            if thing in owners:
                found.append(f"{thing} is of {owners[thing]} and of {name}")
            owners[thing] = name
    for each in holdings:
        if each.last == inf and by_name.get(each.name) != each.things:
            found.append(f"the service {each.name} had {each.things} and has {by_name.get(each.name)}")
    return found
