"""The levels of a wave, and the servers that they are made on.

Levels share the seats of a server by their shares: all of a wave are there before one of them is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from steersman.flowcontrol.queue_set import Queuing
from tools.differential.fairness.configuration import LEVELS, SCHEMAS
from tools.differential.fairness.series import samples
from tools.differential.server import Client

from .gate import EXTRA, Gate
from .requests import Requests
from .script import WATCHES

SHARES: Final = (1, 2, 3, 4, 5, 7, 1, 3, 28, 40)
"""Shares of the levels of a wave."""
NAMESPACES: Final = tuple(f"loads-{watches}" for watches in WATCHES)
GROUP: Final = "loads"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@dataclass
class Case:
    """One level of a wave."""

    number: int
    slot: int
    name: str
    random: Random
    queuing: Queuing
    distinguishers: tuple[str, str]
    lendable: int = 0
    borrowing: int | None = 0
    level: str = ""
    """Its name, another one each time: upstream remembers what was refused of a level that is gone."""

    @property
    def schemas(self) -> tuple[str, str]:
        return f"{self.name}-s0", f"{self.name}-s1"

    @property
    def users(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(f"u{self.slot}-{each}" for each in range(4)), tuple(f"v{self.slot}-{each}" for each in range(2))


class Side:
    """One server with its webhook."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.gate = Gate()
        self.requests = Requests(client.found)
        self.plays: dict[str, Callable[[int], None]] = {}
        """Callbacks by prefix of a request's name, called when the webhook is asked about the request."""
        self._watches: list[Client] = []

    async def prepare(self) -> None:
        await self.gate.start()
        self.gate.came = self._came
        ask = self.client.ask
        for namespace, watches in zip(NAMESPACES, WATCHES, strict=True):
            ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "held"}})
            for _ in range(watches):
                watch = self.client.another()
                watch.begin("GET", f"/api/v1/namespaces/{namespace}/configmaps?watch=1&timeoutSeconds=7200")
                self._watches.append(watch)
        subject = {"kind": "Group", "name": GROUP, "apiGroup": "rbac.authorization.k8s.io"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        ask("POST", _RBAC, {"metadata": {"name": GROUP}, "roleRef": role, "subjects": [subject]})
        rule = {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        condition = {"name": "loads", "expression": "request.namespace.startsWith('loads-')"}
        webhook = {
            "name": "loads.example.com",
            "rules": [rule],
            "matchConditions": [condition],
            "timeoutSeconds": 30,
            "clientConfig": {"url": self.gate.url, "caBundle": self.gate.ca_bundle},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
        }
        ask("POST", _WEBHOOKS, {"metadata": {"name": "loads"}, "webhooks": [webhook]})
        path = f"/api/v1/namespaces/{NAMESPACES[0]}/configmaps"
        await self.requests.warm_up(80, f"{path}/nothing")
        fields = {"Impersonate-User": "first", "Impersonate-Group": GROUP, f"Impersonate-Extra-{EXTRA}": "first-0"}
        await asyncio.gather(*(self.requests.delete(f"{path}/held", fields) for _ in range(40)))

    def _came(self, name: str) -> None:
        play, _, number = name.rpartition("-")
        if play in self.plays:
            self.plays[play](int(number))
        else:
            self.gate.release(name)

    async def close(self) -> None:
        for watch in self._watches:
            watch.close()
        self.requests.close()
        await self.gate.close()

    def make(self, cases: list[Case]) -> None:
        """The levels and schemas of a wave."""
        for case in cases:
            for path, body in _objects(case):
                answer = self.client.ask("POST", path, body)
                if answer.code != 201:
                    raise RuntimeError(f"{body} was not made: {answer}")

    def unmake(self, cases: list[Case]) -> None:
        for case in cases:
            for path, body in reversed(list(_objects(case))):
                self.client.ask("DELETE", f"{path}/{body['metadata']['name']}")

    def release_all(self) -> None:
        """Answers whatever is held, and what comes from now on."""
        self.plays.clear()
        self.gate.release_all()

    def all_seats(self) -> int:
        """Return the seats of the server: the bound of a level that has no borrowing limit."""
        limits = {
            name: value
            for name, labels, value in samples(self.client.ask("GET", "/metrics").body)
            if labels.get("priority_level") == "catch-all"
        }
        return int(limits["upper_limit_seats"] - limits["nominal_limit_seats"])

    def seats(self) -> dict[str, int]:
        """By level."""
        text = self.client.ask("GET", "/metrics").body
        return {
            labels["priority_level"]: int(value)
            for name, labels, value in samples(text)
            if name == "nominal_limit_seats"
        }


def _objects(case: Case) -> list[tuple[str, dict[str, Any]]]:
    queuing = case.queuing
    response: dict[str, Any] = {"type": "Reject"}
    if queuing.queues:
        limits = {"queues": queuing.queues, "handSize": queuing.hand, "queueLengthLimit": queuing.length}
        response = {"type": "Queue", "queuing": limits}
    limited = {
        "nominalConcurrencyShares": SHARES[case.slot],
        "lendablePercent": case.lendable,
        "borrowingLimitPercent": case.borrowing,
        "limitResponse": response,
    }
    level = {"metadata": {"name": case.level}, "spec": {"type": "Limited", "limited": limited}}
    made: list[tuple[str, dict[str, Any]]] = [(LEVELS, level)]
    for name, users, by in zip(case.schemas, case.users, case.distinguishers, strict=True):
        rule = {"verbs": ["delete"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"]}
        subjects = [{"kind": "User", "user": {"name": user}} for user in users]
        spec: dict[str, Any] = {
            "priorityLevelConfiguration": {"name": case.level},
            "matchingPrecedence": 2,
            "rules": [{"subjects": subjects, "resourceRules": [rule]}],
        }
        if by:
            spec["distinguisherMethod"] = {"type": by}
        made.append((SCHEMAS, {"metadata": {"name": name}, "spec": spec}))
    return made
