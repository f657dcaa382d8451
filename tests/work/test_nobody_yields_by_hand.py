"""Loops and callbacks yield with `work.yielding`. Every other way has its reason here."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final[dict[str, int]] = {
    # the writer lets the transport run after so many bytes; only then is a slow peer noticed
    "net/connection.py": 1,
    # a watcher handles its events in an iteration of its own; a cache waits until all watchers have their events
    "storage/cache/cacher.py": 1,
    "storage/cache/replay.py": 1,
    "storage/memory.py": 1,
    # waits for or counts iterations of the event loop
    "cli/up/shown.py": 1,
    "work/work_queue.py": 1,
    "cluster/cluster.py": 1,
    "testing/clock.py": 1,
}


def yields_by_hand(source: str) -> int:
    """Return how often a module awaits `asyncio.sleep(0)`."""
    return sum(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("asyncio.sleep", "sleep")
        and [ast.unparse(each) for each in node.args] == ["0"]
        for node in ast.walk(ast.parse(source))
    )


CALLBACKS: Final[dict[str, int]] = {
    # the mechanism, and work that arrives on connections
    "work/yielding.py": 2,
    "net/time_slices.py": 1,
    "net/acceptor.py": 1,
    "net/link.py": 1,
    # a round of checks that schedules the next one and can be cancelled
    "net/server.py": 1,
}


def reschedules_by_hand(source: str) -> int:
    """Return how many functions of a module schedule themselves for the next iteration of the event loop."""
    return sum(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "call_soon"
        and any(ast.unparse(each).rpartition(".")[2] == function.name for each in call.args)
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
    )


def test_callbacks_go_on_by_the_one_mechanism() -> None:
    counts: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "call_soon(" in source and (count := reschedules_by_hand(source)):
            counts[str(path.relative_to(SOURCE))] = count
    assert dict(counts) == CALLBACKS


def test_loops_yield_by_the_one_mechanism() -> None:
    counts: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "sleep(0)" in source and (count := yields_by_hand(source)):
            counts[str(path.relative_to(SOURCE))] = count
    assert dict(counts) == ALLOWED
