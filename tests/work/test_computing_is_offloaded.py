"""Computations beside the event loop go through `work.offloading`. Other uses of threads have their reasons here."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final[dict[str, int]] = {
    # reads and writes files
    "controlplane/followed_configuration.py": 1,
    "controlplane/token_keys.py": 1,
    "cluster/clock.py": 1,
    "audit/backends/log.py": 2,
    "dumps/recording.py": 1,
    "storage/moving/to_sqlite.py": 5,
    "storage/moving/to_etcd.py": 2,
    "storage/sqlite/store.py": 2,
    "storage/sqlite/reader.py": 2,
    "storage/sqlite/checkpoint.py": 1,
    "storage/sqlite/writer.py": 1,
    # starts processes and waits for them
    "controlplane/workers/process.py": 4,
    "cli/inspect.py": 1,
    # zlib works without the interpreter lock, in two dedicated threads
    "server/config.py": 1,
    "endpoints/compression.py": 2,
    # threads that run an event loop, and one that watches it
    "cli/serve.py": 2,
    "cli/up/page.py": 1,
    "server/loop_watchdog.py": 1,
    "testing/threaded_environment.py": 1,
    # a controllable clock counts what runs in threads
    "testing/clock.py": 1,
    # the mechanism
    "work/threads.py": 1,
    "work/freeing.py": 1,
}
_NAMES: Final = frozenset({"to_thread", "run_in_executor", "ThreadPoolExecutor", "Thread"})


def threads_by_hand(source: str) -> int:
    """Return how often a module starts threads, or runs something in threads of its own."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return sum((each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")) in _NAMES for each in calls)


def test_threads_are_those_of_the_one_mechanism_but_for_what_waits() -> None:
    counts: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if any(name in source for name in _NAMES) and (count := threads_by_hand(source)):
            counts[str(path.relative_to(SOURCE))] = count
    assert dict(counts) == ALLOWED


@pytest.mark.parametrize(
    "source",
    ["await asyncio.to_thread(f)", "loop.run_in_executor(None, f)", "ThreadPoolExecutor(2)", "threading.Thread()"],
)
def test_it_is_found(source: str) -> None:
    assert threads_by_hand(f"async def g():\n    {source}") == 1
