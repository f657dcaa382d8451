"""Loops yield by `work.yielding`: each `asyncio.sleep(0)` elsewhere has a reason, which stands here."""

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


def test_loops_yield_by_the_one_mechanism() -> None:
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "sleep(0)" in source and (count := yields_by_hand(source)):
            found[str(path.relative_to(SOURCE))] = count
    assert dict(found) == ALLOWED
