"""Borrowing of levels over time: many seats are held for longer than a period, on both servers at the same time.

The end of a server's period depends on its start, so each server has demands of its own. The seats that a server gives
its levels are compared with those that this project's rules give for the reported demands. The highest demand in any
period is the same on both servers.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from steersman.api.flowcontrol.v1 import PriorityLevelConfiguration
from steersman.flowcontrol.demand import SMOOTHING
from steersman.flowcontrol.fairness import Fairness
from steersman.flowcontrol.queue_set import Queuing
from tools.differential.fairness.configuration import LEVELS
from tools.differential.fairness.series import samples
from tools.differential.server import Client

from .gate import EXTRA
from .wave import GROUP, NAMESPACES, SHARES, Case, Side

_PERIOD: Final = 10.0
"""Seconds from one look at who borrows to the next."""
_HELD: Final = 2.6 * _PERIOD
_BETWEEN: Final = 0.5
_GAUGES: Final = {
    "demand_seats_high_watermark": "highest",
    "demand_seats_average": "average",
    "demand_seats_stdev": "deviation",
    "demand_seats_smoothed": "smoothed",
    "current_limit_seats": "current",
}
_FRACTION: Final = "seat_fair_frac"


@dataclass
class Seen:
    """Reported state of a server at one time: the gauges of its levels, and the fair fraction."""

    levels: dict[str, dict[str, float]] = field(default_factory=dict)
    fraction: float = 0.0


def seen(text: str) -> Seen:
    """Return the state that a text of metrics reports."""
    found = Seen()
    for name, labels, value in samples(text):
        if name in _GAUGES:
            found.levels.setdefault(labels["priority_level"], {})[_GAUGES[name]] = value
        elif name == _FRACTION:
            found.fraction = value
    return found


def lines_of(told: Seen, levels: list[PriorityLevelConfiguration], seats: int) -> Iterator[str]:
    """Yield a line for each level whose seats do not follow from the demands, on a server with `seats` seats."""
    fairness = Fairness(seats, clock=lambda: 0.0, wall_clock=lambda: 0.0, later=lambda seconds, work: None)
    fairness.digest(levels, ())
    for name, level in fairness.levels.items():
        gauges = told.levels[name]
        level.demand.highest, level.demand.smoothed = int(gauges["highest"]), gauges["smoothed"]
    fairness.allocate()
    for name, level in fairness.levels.items():
        if level.current != told.levels[name]["current"]:
            yield f"{name}: {level.current} seats follow of {told.levels[name]}"
    if abs(fairness.fair_fraction - told.fraction) > 1e-6:
        yield f"a fair fraction of {fairness.fair_fraction} follows, not {told.fraction}"


def _smoothing(before: Seen, now: Seen, names: set[str]) -> Iterator[str]:
    """Yield a line for each level whose smoothed demand does not follow from the period before."""
    for name in names:
        old, gauges = before.levels[name], now.levels[name]
        envelope = gauges["average"] + gauges["deviation"]
        expected = max(envelope, SMOOTHING * old["smoothed"] + (1 - SMOOTHING) * envelope)
        if abs(expected - gauges["smoothed"]) > 1e-6:
            yield f"{name}: {expected} follows of {old} and {gauges}"


class _Look:
    """Reports of one server in the course of a round."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.told: list[Seen] = []

    async def watch(self, until: float) -> None:
        """Keeps what it tells each time that is something new, and the same when it is asked again: upstream may be
        telling of one level while it looks at the next."""
        before = Seen()
        while time.monotonic() < until:
            found = await asyncio.to_thread(lambda: seen(self._side.client.ask("GET", "/metrics").body))
            if found == before and (not self.told or found != self.told[-1]):
                self.told.append(found)
            before = found
            await asyncio.sleep(_BETWEEN)

    def highest(self, level: str) -> float:
        """Return the highest demand of a level in any period."""
        return max(each.levels[level]["highest"] for each in self.told)

    def lines(self) -> Iterator[str]:
        """Yield a line for each report that contradicts other reports of the server."""
        seats = self._side.all_seats()
        items = self._side.client.ask("GET", LEVELS).body["items"]
        plain = [{"metadata": {"name": each["metadata"]["name"]}, "spec": each["spec"]} for each in items]
        levels = msgspec.convert(plain, list[PriorityLevelConfiguration])
        for each in self.told:
            yield from lines_of(each, levels, seats)
        for before, now in zip(self.told[1:], self.told[2:], strict=False):
            yield from _smoothing(before, now, {each.metadata.name for each in levels})


def _round(seed: int, number: int) -> list[tuple[Case, int]]:
    """The levels of a round, and how many requests hold seats of each or wait for one."""
    random = Random(f"{seed}/borrowing/{number}")
    found = []
    for slot, shares in enumerate(SHARES):
        case = Case(number, slot, f"b{number}-{slot}", random, Queuing(8, 1, 50), ("", ""))
        case.level = case.name
        case.lendable = random.choice((0, 10, 50, 90, 100))
        case.borrowing = random.choice((None, None, 0, 50, 150, 400))
        found.append((case, random.choice((0, 0, 1, shares, shares + 3, 2 * shares))))
    return found


def run(a: Client, b: Client, options: argparse.Namespace) -> int:
    """Exit code 1 if anything differs. A case is a round of some 30 s with ten levels."""
    return asyncio.run(_run(a, b, options))


async def _run(a: Client, b: Client, options: argparse.Namespace) -> int:
    sides = (Side(a), Side(b))
    began = time.monotonic()
    different = looks = 0
    numbers = range(options.cases) if options.case is None else (options.case,)
    try:
        for side in sides:
            await side.prepare()
        for number in numbers:
            lines, told = await _play(sides, _round(options.seed, number))
            looks += told
            if lines:
                different += 1
                print("\n      ".join([f"== borrowing case {number} of seed {options.seed}", *lines[:20]]), flush=True)
    finally:
        for side in sides:
            await side.close()
    print(
        f"borrowing: {len(numbers)} cases, {looks} periods, {different} differ, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return 1 if different else 0


async def _hold(side: Side, case: Case, count: int) -> None:
    """So many requests come, and stay until all are let go."""
    side.plays[case.name] = lambda number: None
    path = f"/api/v1/namespaces/{NAMESPACES[0]}/configmaps/held"
    fields = {"Impersonate-User": case.users[0][0], "Impersonate-Group": GROUP}
    await asyncio.gather(
        *(
            side.requests.delete(path, {**fields, f"Impersonate-Extra-{EXTRA}": f"{case.name}-{number}"})
            for number in range(count)
        )
    )


async def _play(sides: tuple[Side, Side], levels: list[tuple[Case, int]]) -> tuple[list[str], int]:
    """Play a round. Return the differences, and the number of distinct reports of the servers."""
    cases = [case for case, _ in levels]
    for side in sides:
        side.make(cases)
    await asyncio.sleep(1.0)
    held = [asyncio.create_task(_hold(side, case, count)) for side in sides for case, count in levels]
    looks = [_Look(side) for side in sides]
    until = time.monotonic() + _HELD
    await asyncio.gather(*(look.watch(until) for look in looks))
    lines = []
    for name, look in zip("ab", looks, strict=True):
        lines += [f"{name}: {line}" for line in look.lines()]
    for case in cases:
        one, other = (look.highest(case.level) for look in looks)
        if one != other:
            lines.append(f"{case.level}: at most {one} and {other} seats were wanted in a period")
    for side in sides:
        side.release_all()
    await asyncio.gather(*held)
    for side in sides:
        side.unmake(cases)
    await asyncio.sleep(1.0)
    return lines, sum(len(look.told) for look in looks)
