"""Waits of writes and reads during compaction of the SQLite file.

    python -m bench.compaction_micro [--history 100000] [--keys 2000] [--size 1500] [--rate 200]

A store with many overwritten revisions gets writes and reads at an even rate, first for some seconds as it is, then
while it is compacted. Told are the latencies from when each was due, and what the writer's thread did at a time: of
each kind of job the longest by the clock, the longest less what the thread waited for a core, and the most processor
time. Where others use the cores only the last two say something of this program; what lies between them is the disk and
the interpreter.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import uvloop

from steersman.storage.interface import KeyValue
from steersman.storage.sqlite import SQLiteStorage, compaction
from steersman.storage.sqlite.checkpoint import Checkpointer
from steersman.storage.sqlite.writer import Writer

PREFIX = "/registry/configmaps/default/"


def waited_for_a_core() -> float:
    """Seconds for which the calling thread was ready to run and did not."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


@dataclass(frozen=True)
class Took:
    """Seconds of a job."""

    wall: float
    held: float
    """Without what the thread waited for a core."""
    cpu: float


class Jobs:
    """Work of the writer's thread, by kind."""

    def __init__(self) -> None:
        self.took: dict[str, list[Took]] = {}

    def timed(self, kind: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            waited, cpu, began = waited_for_a_core(), time.thread_time(), time.perf_counter()
            try:
                return work(*arguments)
            finally:
                wall = time.perf_counter() - began
                took = Took(wall, wall - (waited_for_a_core() - waited), time.thread_time() - cpu)
                self.took.setdefault(kind, []).append(took)

        return call

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Times the jobs of stores that are opened meanwhile."""
        with ExitStack() as stack:
            for kind, owner, name in JOBS:
                stack.enter_context(mock.patch.object(owner, name, self.timed(kind, getattr(owner, name))))
            yield

    def tell(self) -> None:
        for kind, took in self.took.items():
            print(
                f"  {kind:12} x{len(took):<6} {sum(each.wall for each in took) * 1e3:7.0f} ms in all; longest"
                f" {max(each.wall for each in took) * 1e3:6.1f} ms, without waiting for a core"
                f" {max(each.held for each in took) * 1e3:6.1f} ms, CPU {max(each.cpu for each in took) * 1e3:5.1f} ms"
            )
        self.took.clear()


JOBS = (
    ("commit", Writer, "commit"),
    ("end of log", Checkpointer, "_play_the_rest"),
    ("begin", compaction, "begin"),
    ("delete slice", compaction, "delete_slice"),
    ("vacuum slice", compaction, "vacuum_slice"),
)


class Load:
    """Writes and reads at an even rate, each when it is due, whether or not those before have been answered."""

    def __init__(self, store: SQLiteStorage, items: list[KeyValue], size: int, rate: int) -> None:
        self.store, self.items, self.size, self.rate = store, items, size, rate
        self.value = random.Random(2).randbytes(size)
        self.writes: list[float] = []
        self.reads: list[float] = []

    async def write(self, number: int) -> None:
        place = number % len(self.items)
        item = self.items[place]
        self.items[place] = await self.store.update(item.key, self.value, expected_revision=item.mod_revision)

    async def read(self, number: int) -> None:
        await self.store.get(self.items[number * 7 % len(self.items)].key)

    async def run(self, done: Callable[[], bool]) -> None:
        """Goes on until `done`."""
        loop = asyncio.get_running_loop()
        began, number = loop.time(), 0
        tasks: set[asyncio.Task[None]] = set()

        async def one(work: Awaitable[None], due: float, into: list[float]) -> None:
            await work
            into.append(loop.time() - due)

        while not done():
            due = began + number / self.rate
            await asyncio.sleep(max(0.0, due - loop.time()))
            for work, into in ((self.write(number), self.writes), (self.read(number), self.reads)):
                task = asyncio.create_task(one(work, due, into))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            number += 1
        await asyncio.gather(*tasks)

    def tell(self, name: str) -> None:
        for kind, took in (("write", self.writes), ("read", self.reads)):
            took.sort()
            p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
            late = sum(each > 0.1 for each in took)
            print(
                f"{name}: {kind:5} x{len(took):<6} p50 {p50 * 1e3:6.2f} ms  p99 {p99 * 1e3:6.2f} ms"
                f"  longest {took[-1] * 1e3:6.1f} ms, {late} over 100 ms"
            )
            took.clear()


async def measure(folder: Path, history: int, keys: int, size: int, rate: int, seconds: float) -> None:
    jobs = Jobs()
    with jobs.watched():
        store = await SQLiteStorage.open(folder / "store.db", compaction_interval=0, lease_interval=0)
        chance = random.Random(1)
        items = list(
            await asyncio.gather(
                *(store.create(f"{PREFIX}object-{number:06}", chance.randbytes(size)) for number in range(keys))
            )
        )
        for start in range(0, history, 250):
            places = [(start + number) % keys for number in range(min(250, history - start))]
            changed = await asyncio.gather(
                *(
                    store.update(items[at].key, chance.randbytes(size), expected_revision=items[at].mod_revision)
                    for at in places
                )
            )
            for at, item in zip(places, changed, strict=True):
                items[at] = item
        print(
            f"{history} overwritten revisions of {keys} objects, {size} bytes each:"
            f" {(folder / 'store.db').stat().st_size >> 20} MiB"
        )
        jobs.took.clear()
        gc.freeze()
        load = Load(store, items, size, rate)
        end = time.monotonic() + seconds
        await load.run(lambda: time.monotonic() > end)
        load.tell("as it is  ")
        jobs.tell()
        began, cpu = time.perf_counter(), time.process_time()
        compacting = asyncio.create_task(store.compact(store.revision))
        await load.run(compacting.done)
        await compacting
        load.tell("compacting")
        print(f"  compacted in {time.perf_counter() - began:.1f} s, CPU of all {time.process_time() - cpu:.1f} s")
        jobs.tell()
        size_of = {name: (folder / name).stat().st_size >> 20 for name in ("store.db", "store.db-wal")}
        print(f"  file {size_of['store.db']} MiB, log {size_of['store.db-wal']} MiB")
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=int, default=100_000, help="overwritten revisions")
    parser.add_argument("--keys", type=int, default=2_000, help="objects that are overwritten")
    parser.add_argument("--size", type=int, default=1_500, help="bytes of each")
    parser.add_argument("--rate", type=int, default=200, help="writes, and as many reads, a second")
    parser.add_argument("--seconds", type=float, default=10, help="how long it is measured before it is compacted")
    parser.add_argument("--folder", type=Path, help="where the file is made (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        uvloop.run(measure(Path(folder), options.history, options.keys, options.size, options.rate, options.seconds))


if __name__ == "__main__":
    main()
