"""Cost of a write through the owner of a storage: CPU microseconds of all processes, compared with a single process.

    python -m bench.shared_micro [--workers 2] [--updates 6000] [--at-once 16] [--rounds 3]

SQLite with sync, a cache that follows in each process, no HTTP: what `steersman serve --workers` adds to storage. So
many updates at a time are spread over the workers, each of which waits before each until it has been told of
everything, as a request does. Linux or macOS, as it forks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from bench.storage_micro import PODS, VALUE, body_at, present
from steersman.machinery.shared_words import SharedWords
from steersman.storage.cache.cacher import Cacher
from steersman.storage.interface import KeyValue, Storage
from steersman.storage.shared.client import SharedStorage
from steersman.storage.shared.server import StorageServer
from steersman.storage.sqlite import SQLiteStorage

Wait = Callable[[], Awaitable[None] | None]


async def open_sqlite(directory: str) -> SQLiteStorage:
    return await SQLiteStorage.open(Path(directory) / "store.db", compaction_interval=0, lease_interval=0)


async def updated(storage: Storage, name: str, at_once: int, each: int, catching_up: Wait) -> float:
    """Seconds of CPU of this process for `each` updates of so many keys side by side."""
    cacher = Cacher(storage, PODS, present=present, body_at=body_at)
    await cacher.start()
    made = [await storage.create(f"{PODS}default/{name}-{number}", VALUE) for number in range(at_once)]

    async def update(item: KeyValue) -> None:
        for _ in range(each):
            if (behind := catching_up()) is not None:
                await behind
            item = await storage.update(item.key, VALUE, expected_revision=item.mod_revision)

    began = time.process_time()
    await asyncio.gather(*map(update, made))
    return time.process_time() - began


async def alone(updates: int, at_once: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        storage = await open_sqlite(directory)
        took = await updated(storage, "one", at_once, updates // at_once, lambda: None)
        await storage.close()
    return took


async def work(sock: socket.socket, words: SharedWords, name: str, at_once: int, each: int, told: int) -> None:
    """A worker, which tells what it took."""
    storage = await SharedStorage.open(sock, words)
    took = await updated(storage, name, at_once, each, storage.catching_up)
    os.write(told, f"{took}\n".encode())
    await asyncio.sleep(1)  # the others go on for a moment


async def own(socks: list[socket.socket], words: SharedWords, results: int) -> tuple[float, list[float]]:
    """Return the owner's processor time, and the report of each worker."""
    with tempfile.TemporaryDirectory() as directory:
        storage = await open_sqlite(directory)
        server = StorageServer(storage, words)
        await server.start()
        for each in socks:
            await server.connect(each, lambda: None)
        began = time.process_time()
        lines = b""
        while lines.count(b"\n") < len(socks):
            lines += await asyncio.to_thread(os.read, results, 4096)
        took = time.process_time() - began
        await server.stop()
        await storage.close()
    return took, [float(line) for line in lines.split()]


def shared(workers: int, updates: int, at_once: int) -> tuple[float, list[float]]:
    """Return the processor time of the owner and of each worker."""
    words = SharedWords.create()
    pairs = [socket.socketpair() for _ in range(workers)]
    results, told = os.pipe()
    children = []
    for number, (_, far) in enumerate(pairs):
        child = os.fork()
        if not child:
            for near, other in pairs:
                near.close()
                if other is not far:
                    other.close()
            uvloop.run(work(far, words, f"w{number}", at_once // workers, updates // at_once, told))
            os._exit(0)
        children.append(child)
    for _, far in pairs:
        far.close()
    took = uvloop.run(own([near for near, _ in pairs], words, results))
    for child in children:
        os.waitpid(child, 0)
    os.close(results)
    os.close(told)
    words.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--updates", type=int, default=6000, metavar="N")
    parser.add_argument("--at-once", type=int, default=16, metavar="N", help="a multiple of the workers")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    args = parser.parse_args()
    if args.workers < 1 or args.at_once < args.workers or args.at_once % args.workers:
        parser.error("--at-once is a multiple of --workers")
    updates = args.updates // args.at_once * args.at_once
    for _ in range(args.rounds):
        one = uvloop.run(alone(updates, args.at_once))
        owner, each = shared(args.workers, updates, args.at_once)
        parts = " + ".join(f"{seconds / updates * 1e6:.0f}" for seconds in (owner, *each))
        total = (owner + sum(each)) / updates * 1e6
        single = one / updates * 1e6
        print(f"one process {single:.0f} us; {args.workers} workers {total:.0f} us (owner + each: {parts})")


if __name__ == "__main__":
    main()
