"""Cost of storage operations: CPU microseconds per write, per cached event, per watcher; bytes per object.

    python -m bench.storage_micro [write] [cache] [fanout] [memory]

CPU is that of the whole process (the loop and the writer's thread, user and system), so fsync's share is in it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import uvloop

from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import WatchEvent
from steersman.storage.interface import KeyValue, Storage
from steersman.storage.memory import MemoryStorage
from steersman.storage.sqlite import SQLiteStorage

PODS = "/registry/pods/"
VALUE = random.Random(1).randbytes(1000)

Work = Callable[[], Awaitable[object]]


def row(name: str, count: int, wall: float, cpu: float) -> None:
    print(f"{name:52} {cpu / count * 1e6:9.2f} us CPU  {wall / count * 1e6:9.2f} us wall", flush=True)


async def timed(name: str, count: int, work: Work) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    row(name, count, time.perf_counter() - wall, time.process_time() - cpu)


async def open_sqlite(directory: str) -> Storage:
    return await SQLiteStorage.open(Path(directory) / "store.db", compaction_interval=0, lease_interval=0)


async def bench_write(directory: str) -> None:
    """Closed loops of creating, then updating keys of their own: `batch` of them side by side."""
    for name, store in (("memory", MemoryStorage()), ("sqlite", await open_sqlite(directory))):
        for batch in (1, 16, 64):
            rounds = 6400 // batch if batch > 1 else 1000
            items: dict[str, KeyValue] = {}
            await timed(f"{name}: create, {batch} side by side", rounds * batch, creates(store, items, batch, rounds))
            await timed(f"{name}: update, {batch} side by side", rounds * batch, updates(store, items, batch))
        await timed(f"{name}: get", 2000, reads(store, 2000))
        await store.close()


def creates(store: Storage, items: dict[str, KeyValue], batch: int, rounds: int) -> Work:
    async def create(worker: int) -> None:
        for number in range(rounds):
            key = f"{PODS}{batch}/{worker}-{number}"
            items[key] = await store.create(key, VALUE)

    return lambda: asyncio.gather(*(create(worker) for worker in range(batch)))


def updates(store: Storage, items: dict[str, KeyValue], batch: int) -> Work:
    async def update(mine: Sequence[KeyValue]) -> None:
        for item in mine:
            await store.update(item.key, VALUE, expected_revision=item.mod_revision)

    everything = list(items.values())
    return lambda: asyncio.gather(*(update(everything[worker::batch]) for worker in range(batch)))


def reads(store: Storage, count: int) -> Work:
    async def read() -> None:
        for number in range(count):
            await store.get(f"{PODS}16/0-{number % 400}")

    return read


def present(value: bytes, revision: int) -> bytes:
    return b'{"resourceVersion":"%d",%s' % (revision, value)


def body_at(body: bytes, revision: int) -> bytes:
    return present(body.partition(b",")[2], revision)


async def bench_cache(directory: str) -> None:
    """A write in memory with and without a cache: the difference is the cache's."""
    for cached in (False, True):
        store = MemoryStorage()
        cacher = Cacher(store, PODS, present=present, body_at=body_at)
        if cached:
            await cacher.start()
        await timed(f"memory: create, cache={cached}", 20_000, create_many(store, 20_000))
        await timed(f"memory: update, cache={cached}", 20_000, update_many(store, 20_000))
        if cached:
            listing = time.perf_counter()
            found, _ = cacher.list(PODS)
            row("cache: list of 20,000, each", len(found), time.perf_counter() - listing, 0)
            past = time.perf_counter()
            cacher.list_at(cacher.revision - 5000, PODS, limit=500)
            row("cache: page of 500 from 5,000 changes ago, whole", 1, time.perf_counter() - past, 0)


def create_many(store: Storage, count: int) -> Work:
    async def create() -> None:
        for number in range(count):
            await store.create(f"{PODS}ns/{number}", VALUE)

    return create


def update_many(store: Storage, count: int) -> Work:
    async def update() -> None:
        for number in range(count):
            await store.update(f"{PODS}ns/{number}", VALUE, expected_revision=number + 2)

    return update


async def bench_fanout(directory: str) -> None:
    """Watchers that do nothing: what the cache itself spends on each."""
    for selecting in (False, True):
        for count in (1, 100, 10_000):
            store = MemoryStorage()
            cacher = Cacher(store, PODS, present=present, body_at=body_at)
            await cacher.start()
            accept = (lambda entry: True) if selecting else None
            for _ in range(count):
                cacher.watch(PODS, after_revision=None, accept=accept, deliver=ignore)
            for number in range(10_000):
                cacher.watch(f"{PODS}other-{number}/", after_revision=None, deliver=ignore)
            events = max(200_000 // count, 100) if count > 1 else 5000
            await timed(
                f"fan-out: event to each of {count} watchers, selecting={selecting}",
                events * count,
                create_many(store, events),
            )


def ignore(event: WatchEvent) -> None:
    pass


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def bench_memory(directory: str) -> None:
    """100,000 objects of 1 KiB in SQLite, loaded into a cache."""
    store = await open_sqlite(directory)
    count = 100_000
    for start in range(0, count, 1000):
        await asyncio.gather(
            *(store.create(f"{PODS}default/object-{number:07}", VALUE) for number in range(start, start + 1000))
        )
    before = resident()
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    await timed("cache: load of 100,000, each", count, cacher.start)
    print(f"{'cache: memory of each of 100,000 (RSS)':52} {(resident() - before) / count:9.0f} bytes")
    before = resident()
    await asyncio.gather(
        *(store.update(f"{PODS}default/object-{n:07}", VALUE, expected_revision=n + 2) for n in range(20_000))
    )
    print(f"{'cache: memory of the window after 20,000 updates':52} {(resident() - before) / 2**20:9.0f} MiB")
    await store.close()


BENCHES = {"write": bench_write, "cache": bench_cache, "fanout": bench_fanout, "memory": bench_memory}


async def run(names: Sequence[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            await BENCHES[name](directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run of {', '.join(BENCHES)} (default: all)")
    names = parser.parse_args().names
    for name in names:
        if name not in BENCHES:
            parser.error(f"unknown benchmark {name!r}: choose from {', '.join(BENCHES)}")
    uvloop.run(run(names or list(BENCHES)))


if __name__ == "__main__":
    main()
