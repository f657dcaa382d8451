"""Plays loads on two servers at the same time, several levels side by side, and compares what came of them.

Levels share the seats of a server by their shares, so a wave of cases makes all of its levels first, and the seats that
upstream then says each has are those that the scripts are made for.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from random import Random
from typing import Any, Final

from steersman.flowcontrol.queue_set import Queuing
from tools.differential.fairness.series import samples
from tools.differential.server import Client

from .player import Play
from .script import FILLING, Event, Script, determined
from .wave import NAMESPACES, SHARES, Case, Side

_SETTLED: Final = 1.0
_STAGGER: Final = 0.023
_ATTEMPTS: Final = "request_dispatch_no_accommodation_total"
"""Metric of attempts in vain. Upstream counts them with the next request that arrives or ends, this project at once."""
_COUNTED: Final = (
    "rejected_requests_total",
    "dispatched_requests_total",
    "request_wait_duration_seconds_count",
    "request_queue_length_after_enqueue_bucket",
    "work_estimated_seats_bucket",
    "request_execution_seconds_count",
    "current_inqueue_requests",
    "current_inqueue_seats",
    "current_executing_requests",
    "current_executing_seats",
    "watch_count_samples_count",
    _ATTEMPTS,
)


def _counted(case: Case, text: str, *, attempts: bool) -> dict[str, float]:
    """Return the counters of a case's level, with or without attempts to dispatch a request."""
    found = {}
    for name, labels, value in samples(text):
        if name in _COUNTED and (attempts or name != _ATTEMPTS) and value and labels["priority_level"] == case.level:
            found[f"{name} {sorted(labels.items())}"] = value
    return found


def _case(seed: int, number: int) -> Case:
    random = Random(f"{seed}/loads/{number}")
    queuing = Queuing()
    if random.random() < 0.85:
        queues = random.choice((1, 2, 3, 4, 8, 16, 64))
        queuing = Queuing(queues, random.randint(1, min(queues, 4)), random.choice((1, 2, 3, 5, 10)))
    distinguishers = (random.choice(("ByUser", "ByUser", "", "ByNamespace")), random.choice(("ByUser", "")))
    return Case(number, number % len(SHARES), f"w{number}", random, queuing, distinguishers)


def run(a: Client, b: Client, options: argparse.Namespace) -> int:
    """Exit code 1 if anything differs."""
    return asyncio.run(_run(a, b, options))


async def _run(a: Client, b: Client, options: argparse.Namespace) -> int:
    sides = (Side(a), Side(b))
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
    print(
        f"loads: {len(numbers)} cases, {tally['requests']} requests, {tally['differ']} differ, {tally['once']} "
        f"differed only once, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return 1 if tally["differ"] else 0


async def _wave(
    sides: tuple[Side, Side], wave: list[Case], wanted: list[Case], tally: dict[str, int]
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
            play = Play(script, case.name, side.requests, side.gate)
            side.plays[case.name] = play.came
            plays.append(play.play(begins + case.slot * _STAGGER))
    results = await asyncio.gather(*plays)
    await asyncio.sleep(0.3)
    texts = [side.client.ask("GET", "/metrics").body for side in sides]
    different = {}
    for index, case in enumerate(wanted):
        script, expected = scripts[case.number]
        counted = [_counted(case, text, attempts=script.is_patient) for text in texts]
        lines = list(_differences(results[2 * index], results[2 * index + 1], expected, counted))
        if lines:
            different[case.number] = [f"   {script}", *lines]
    for side in sides:
        side.plays.clear()
        side.unmake(wave)
    await asyncio.sleep(_SETTLED)
    return different


def _blank(case: Case, seats: int) -> Script:
    return Script(case.queuing, seats, case.distinguishers, case.schemas, case.users, NAMESPACES, 0, ())


def _differences(a: list[Event], b: list[Event], expected: list[Event], counted: list[dict[str, float]]) -> Any:
    """Return the differences of two plays, or their difference from the expected events if they are equal."""
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
