"""Loops yield by `work.yielding`, those of callbacks too: what does so elsewhere has a reason, which stands here."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final[dict[str, int]] = {
    # the writer gives the transport a turn after so many bytes, as it must before it can tell that the peer is slow
    "net/connection.py": 1,
    # a watcher takes what it was given in a turn of its own; and a cache waits until all have been told
    "storage/cache/cacher.py": 2,
    "storage/memory.py": 1,
    # turns of the event loop are waited for or counted
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
    # the mechanism, and those of the work that comes on connections
    "work/yielding.py": 2,
    "net/time_slices.py": 1,
    "net/acceptor.py": 1,
    "net/link.py": 1,
    # a round of checks, which is cancelled, and after which the next one is set
    "net/server.py": 1,
}


def goes_on_by_hand(source: str) -> int:
    """Return how many functions of a module have themselves called in the next turn of the event loop."""
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
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "call_soon(" in source and (count := goes_on_by_hand(source)):
            found[str(path.relative_to(SOURCE))] = count
    assert dict(found) == CALLBACKS


def test_loops_yield_by_the_one_mechanism() -> None:
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "sleep(0)" in source and (count := yields_by_hand(source)):
            found[str(path.relative_to(SOURCE))] = count
    assert dict(found) == ALLOWED
