"""CPU time and memory of programs, shared per namespace."""

from __future__ import annotations

import asyncio

from steersman.nodes.shares import Shares, Slices

STEP = 0.001


class Processor:
    """Programs on a processor whose time is counted."""

    def __init__(self) -> None:
        self.time = 0.0
        self.shares = Shares(lambda: self.time)
        self.done: dict[str, float] = {}

    async def program(self, namespace: str, steps: int, *, waits: bool = True) -> None:
        """Run a program for some steps of one millisecond."""
        slices = Slices(self.shares.for_namespace(namespace), waits=waits)
        for _ in range(steps):
            await slices.begin()
            self.time += STEP
            slices.end()
            self.done[namespace] = self.done.get(namespace, 0.0) + STEP


async def test_all_programs_together_have_one_slice_per_iteration() -> None:
    machine = Processor()
    tasks = [asyncio.create_task(machine.program(f"n{number % 3}", 20)) for number in range(200)]
    longest = 0.0
    while not all(each.done() for each in tasks):
        before = machine.time
        await asyncio.sleep(0)
        longest = max(longest, machine.time - before)
    assert longest < 0.006


async def test_a_namespace_with_many_programs_does_not_keep_another_waiting() -> None:
    machine = Processor()
    tasks = [asyncio.create_task(machine.program("busy", 100)) for _ in range(200)]
    for _ in range(10):
        await asyncio.sleep(0)
    before = machine.time
    await machine.program("other", 20)
    assert machine.time - before < 0.1
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_who_has_used_much_goes_on_slowly_and_others_as_before() -> None:
    machine = Processor()
    share = machine.shares.for_namespace("busy")
    share.charge(10.5)
    slow = asyncio.create_task(machine.program("busy", 1))
    await machine.program("busy", 5, waits=False)
    await machine.program("other", 5)
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_memory_is_shared_by_a_namespace() -> None:
    shares = Shares()
    assert shares.for_namespace("a").reserve(60 << 20)
    assert not shares.for_namespace("a").reserve(10 << 20)
    assert shares.for_namespace("b").reserve(10 << 20)
    shares.for_namespace("a").release(60 << 20)
    assert shares.for_namespace("a").reserve(60 << 20)


async def test_unused_shares_are_dropped() -> None:
    shares = Shares()
    shares.for_namespace("kept").reserve(1)
    for number in range(2000):
        shares.for_namespace(f"n{number}")
    assert len(shares._shares) < 600
    assert not shares.for_namespace("kept").reserve(64 << 20)
