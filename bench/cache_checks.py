"""Cost of comparing a watch cache with etcd: processor time for all keys, and the holds of the event loop.

    python -m bench.cache_checks --etcd http://127.0.0.1:2379 [--objects 100000]

The etcd should be empty, as keys are written below /registry/pods/: values of 1,000 bytes. Processor time is that of
this process alone; etcd reads its index and leaves the values where they are.
"""

from __future__ import annotations

import argparse
import asyncio
import time

import uvloop

from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.consistency import check
from steersman.storage.etcd import EtcdStorage

PODS = "/registry/pods/"
_SIDE_BY_SIDE = 64
_TICK = 0.001


def present(value: bytes, revision: int) -> bytes:
    return b"%d%s" % (revision, value)


async def fill(storage: EtcdStorage, objects: int) -> None:
    async def create(first: int) -> None:
        for number in range(first, objects, _SIDE_BY_SIDE):
            await storage.create(f"{PODS}default/{number}", b"x" * 1000)

    await asyncio.gather(*(create(first) for first in range(_SIDE_BY_SIDE)))


async def longest_hold(longest: list[float]) -> None:
    """Keeps in `longest` the most processor time between two ticks: on a busy machine they come late in any case."""
    while True:
        began = time.thread_time()
        await asyncio.sleep(_TICK)
        longest[0] = max(longest[0], time.thread_time() - began)


async def measure(url: str, objects: int) -> None:
    storage = await EtcdStorage.open([url], compaction_interval=0)
    await fill(storage, objects)
    cacher = Cacher(storage, PODS, present=present, body_at=present)
    await cacher.start()
    longest = [0.0]
    ticking = asyncio.create_task(longest_hold(longest))
    await asyncio.sleep(0)
    for _ in range(3):
        longest[0] = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        await check(cacher, storage.revisions)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            f"{len(cacher.list(PODS)[0]):,} keys: {wall:.2f} s, {cpu:.3f} s CPU, {cpu / objects * 1e6:.2f} us each; "
            f"the loop was held for {longest[0] * 1000:.1f} ms of it at most; {cacher.counts.checks}"
        )
    ticking.cancel()
    await cacher.stop()
    await storage.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etcd", required=True, help="URL of a member")
    parser.add_argument("--objects", type=int, default=100_000)
    options = parser.parse_args()
    uvloop.run(measure(options.etcd, options.objects))


if __name__ == "__main__":
    main()
