"""Plays loads on two servers at the same time, several levels side by side, and compares what came of them.

Levels share the seats of a server by their shares, so a wave of cases makes all of its levels first, and the seats that
upstream then says each has are those that the scripts are made for.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from steersman.flowcontrol.queue_set import Queuing
from tools.differential.fairness.configuration import LEVELS, SCHEMAS
from tools.differential.fairness.series import samples
from tools.differential.server import Client

from .gate import EXTRA, Gate
from .player import Play
from .requests import Requests
from .script import FILLING, WATCHES, Event, Script, determined

SHARES: Final = (1, 2, 3, 4, 5, 7, 1, 3, 28, 40)
"""Of the levels of a wave."""
_NAMESPACES: Final = tuple(f"loads-{watches}" for watches in WATCHES)
_SETTLED: Final = 1.0
_STAGGER: Final = 0.023
_GROUP: Final = "loads"
_ATTEMPTS: Final = "request_dispatch_no_accommodation_total"
"""When somebody has waited in vain others are let in at once, upstream with the next request that comes or goes."""
_COUNTED: Final = (
    "rejected_requests_total", "dispatched_requests_total", "request_wait_duration_seconds_count",
    "request_queue_length_after_enqueue_bucket", "work_estimated_seats_bucket", "request_execution_seconds_count",
    "current_inqueue_requests", "current_inqueue_seats", "current_executing_requests", "current_executing_seats",
    "watch_count_samples_count", _ATTEMPTS,
)  # fmt: skip
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@dataclass
class _Case:
    """One level of a wave."""

    number: int
    slot: int
    name: str
    random: Random
    queuing: Queuing
    distinguishers: tuple[str, str]
    level: str = ""
    """Its name, another one each time: upstream remembers what was refused of a level that is gone."""

    @property
    def schemas(self) -> tuple[str, str]:
        return f"{self.name}-s0", f"{self.name}-s1"

    @property
    def users(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(f"u{self.slot}-{each}" for each in range(4)), tuple(f"v{self.slot}-{each}" for each in range(2))


class _Side:
    """One server with its webhook."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.gate = Gate()
        self.requests = Requests(client.found)
        self.plays: dict[str, Play] = {}
        self._watches: list[Client] = []

    async def prepare(self) -> None:
        await self.gate.start()
        self.gate.came = self._came
        ask = self.client.ask
        for namespace, watches in zip(_NAMESPACES, WATCHES, strict=True):
            ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "held"}})
            for _ in range(watches):
                watch = self.client.another()
                watch.begin("GET", f"/api/v1/namespaces/{namespace}/configmaps?watch=1&timeoutSeconds=7200")
                self._watches.append(watch)
        subject = {"kind": "Group", "name": _GROUP, "apiGroup": "rbac.authorization.k8s.io"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        ask("POST", _RBAC, {"metadata": {"name": _GROUP}, "roleRef": role, "subjects": [subject]})
        rule = {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        condition = {"name": "loads", "expression": "request.namespace.startsWith('loads-')"}
        webhook = {
            "name": "loads.example.com", "rules": [rule], "matchConditions": [condition], "timeoutSeconds": 30,
            "clientConfig": {"url": self.gate.url, "caBundle": self.gate.ca_bundle}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        }  # fmt: skip
        ask("POST", _WEBHOOKS, {"metadata": {"name": "loads"}, "webhooks": [webhook]})
        path = f"/api/v1/namespaces/{_NAMESPACES[0]}/configmaps"
        await self.requests.warm_up(80, f"{path}/nothing")
        fields = {"Impersonate-User": "first", "Impersonate-Group": _GROUP, f"Impersonate-Extra-{EXTRA}": "first-0"}
        await asyncio.gather(*(self.requests.delete(f"{path}/held", fields) for _ in range(40)))

    def _came(self, name: str) -> None:
        play, _, number = name.rpartition("-")
        if play in self.plays:
            self.plays[play].came(int(number))
        else:
            self.gate.release(name)

    async def close(self) -> None:
        for watch in self._watches:
            watch.close()
        self.requests.close()
        await self.gate.close()

    def make(self, cases: list[_Case]) -> None:
        """The levels and schemas of a wave."""
        for case in cases:
            for path, body in _objects(case):
                answer = self.client.ask("POST", path, body)
                if answer.code != 201:
                    raise RuntimeError(f"{body} was not made: {answer}")

    def unmake(self, cases: list[_Case]) -> None:
        for case in cases:
            for path, body in reversed(list(_objects(case))):
                self.client.ask("DELETE", f"{path}/{body['metadata']['name']}")

    def seats(self) -> dict[str, int]:
        """By level."""
        text = self.client.ask("GET", "/metrics").body
        return {labels["priority_level"]: int(value) for name, labels, value in samples(text)
                if name == "nominal_limit_seats"}  # fmt: skip


def _counted(case: _Case, text: str, *, attempts: bool) -> dict[str, float]:
    """What was counted of the level of a case, with or without attempts to let somebody in."""
    found = {}
    for name, labels, value in samples(text):
        if name in _COUNTED and (attempts or name != _ATTEMPTS) and value and labels["priority_level"] == case.level:
            found[f"{name} {sorted(labels.items())}"] = value
    return found


def _objects(case: _Case) -> list[tuple[str, dict[str, Any]]]:
    queuing = case.queuing
    response: dict[str, Any] = {"type": "Reject"}
    if queuing.queues:
        limits = {"queues": queuing.queues, "handSize": queuing.hand, "queueLengthLimit": queuing.length}
        response = {"type": "Queue", "queuing": limits}
    limited = {"nominalConcurrencyShares": SHARES[case.slot], "lendablePercent": 0, "borrowingLimitPercent": 0,
               "limitResponse": response}  # fmt: skip
    level = {"metadata": {"name": case.level}, "spec": {"type": "Limited", "limited": limited}}
    made: list[tuple[str, dict[str, Any]]] = [(LEVELS, level)]
    for name, users, by in zip(case.schemas, case.users, case.distinguishers, strict=True):
        rule = {"verbs": ["delete"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"]}
        subjects = [{"kind": "User", "user": {"name": user}} for user in users]
        spec: dict[str, Any] = {
            "priorityLevelConfiguration": {"name": case.level}, "matchingPrecedence": 2,
            "rules": [{"subjects": subjects, "resourceRules": [rule]}],
        }  # fmt: skip
        if by:
            spec["distinguisherMethod"] = {"type": by}
        made.append((SCHEMAS, {"metadata": {"name": name}, "spec": spec}))
    return made


def _case(seed: int, number: int) -> _Case:
    random = Random(f"{seed}/loads/{number}")
    queuing = Queuing()
    if random.random() < 0.85:
        queues = random.choice((1, 2, 3, 4, 8, 16, 64))
        queuing = Queuing(queues, random.randint(1, min(queues, 4)), random.choice((1, 2, 3, 5, 10)))
    distinguishers = (random.choice(("ByUser", "ByUser", "", "ByNamespace")), random.choice(("ByUser", "")))
    return _Case(number, number % len(SHARES), f"w{number}", random, queuing, distinguishers)


def run(a: Client, b: Client, options: argparse.Namespace) -> int:
    """Exit code 1 if anything differs."""
    return asyncio.run(_run(a, b, options))


async def _run(a: Client, b: Client, options: argparse.Namespace) -> int:
    sides = (_Side(a), _Side(b))
    began = time.monotonic()
    tally = {"differ": 0, "once": 0, "requests": 0, "waves": 0}
    try:
        for side in sides:
            await side.prepare()
        numbers = range(options.cases) if options.case is None else (options.case,)
        for first in range(numbers[0] // len(SHARES), numbers[-1] // len(SHARES) + 1):
            wave = [_case(options.seed, first * len(SHARES) + slot) for slot in range(len(SHARES))]
            wanted = [case for case in wave if case.number in numbers]
            different = await _wave(sides, wave, wanted, tally)
            if different:
                again = await _wave(sides, wave, [case for case in wave if case.number in different], tally)
                for number, lines in different.items():
                    is_again = number in again
                    tally["differ" if is_again else "once"] += 1
                    shown = again.get(number, lines)
                    if tally["differ"] <= options.show:
                        title = f"== loads case {number} of seed {options.seed}"
                        print(
                            "\n".join([title if is_again else f"{title}, not so when played again", *shown]), flush=True
                        )
    finally:
        for side in sides:
            await side.close()
    print(f"loads: {len(numbers)} cases, {tally['requests']} requests, {tally['differ']} differ, {tally['once']} "
          f"differed only once, {time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    return 1 if tally["differ"] else 0


async def _wave(
    sides: tuple[_Side, _Side], wave: list[_Case], wanted: list[_Case], tally: dict[str, int]
) -> dict[int, list[str]]:
    """Plays the cases that are wanted of a wave; what was different, by their numbers."""
    tally["waves"] += 1
    for case in wave:
        case.level = f"load-{tally['waves']}-{case.slot}"
    for side in sides:
        side.make(wave)
    await asyncio.sleep(_SETTLED)
    seats = sides[0].seats()
    scripts: dict[int, tuple[Script, list[Event]]] = {}
    for case in wanted:
        scripts[case.number] = determined(Random(f"{case.name}"), _blank(case, seats[case.level]))
    begins = asyncio.get_running_loop().time() + FILLING + 0.3
    plays = []
    for case in wanted:
        script, _ = scripts[case.number]
        tally["requests"] += len(script.arrivals())
        for side in sides:
            play = side.plays[case.name] = Play(script, case.name, side.requests, side.gate)
            plays.append(play.play(begins + case.slot * _STAGGER))
    found = await asyncio.gather(*plays)
    await asyncio.sleep(0.3)
    texts = [side.client.ask("GET", "/metrics").body for side in sides]
    different = {}
    for index, case in enumerate(wanted):
        script, expected = scripts[case.number]
        counted = [_counted(case, text, attempts=script.is_patient) for text in texts]
        lines = list(_differences(found[2 * index], found[2 * index + 1], expected, counted))
        if lines:
            different[case.number] = [f"   {script}", *lines]
    for side in sides:
        side.plays.clear()
        side.unmake(wave)
    await asyncio.sleep(_SETTLED)
    return different


def _blank(case: _Case, seats: int) -> Script:
    return Script(case.queuing, seats, case.distinguishers, case.schemas, case.users, _NAMESPACES, 0, ())


def _differences(a: list[Event], b: list[Event], expected: list[Event], counted: list[dict[str, float]]) -> Any:
    """Where two plays differ from each other, and, if they do not, from what was expected."""
    if a != b:
        yield f"      only a: {sorted(set(a) - set(b))}"
        yield f"      only b: {sorted(set(b) - set(a))}"
        yield f"      expected: {expected}"
    elif (plain := [(tick, what.partition(",")[0], number) for tick, what, number in a]) != expected:
        was, not_so = sorted(set(plain) - set(expected)), sorted(set(expected) - set(plain))
        yield f"      neither was as expected: {was}, not {not_so}"
    one, other = counted
    for key in sorted(one.keys() | other.keys()):
        if one.get(key) != other.get(key):
            yield f"      {key}: a {one.get(key, 0)}, b {other.get(key, 0)}"
