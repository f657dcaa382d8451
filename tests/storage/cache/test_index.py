"""Indexes of objects by a field's value: a lookup returns the same objects as a scan of everything."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.storage.cache import cacher as cacher_module
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry, WatchEvent
from steersman.storage.cache.index import FieldIndex
from steersman.storage.interface import FutureRevision
from steersman.storage.memory import MemoryStorage
from steersman.work.yielding import IterationGate
from tests.loop_turns import steps_of_turns, yield_often

PODS = "/registry/pods/"
NODES = ("", "a", "b", "c")


def node_of(entry: Entry) -> str:
    return entry.body.decode().partition("@")[0]


def present(value: bytes, revision: int) -> bytes:
    return b"%s@%d" % (value, revision)


def body_at(body: bytes, revision: int) -> bytes:
    return b"%s@%d" % (body.partition(b"@")[0], revision)


@pytest.fixture
async def storage() -> AsyncIterator[MemoryStorage]:
    storage = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    yield storage
    await storage.close()


@pytest.fixture
async def cacher(storage: MemoryStorage) -> AsyncIterator[Cacher]:
    cacher = Cacher(storage, PODS, present=present, body_at=body_at, value_of=node_of)
    await cacher.start()
    yield cacher
    await cacher.stop()


async def write(storage: MemoryStorage, dice: random.Random, times: int) -> None:
    for _ in range(times):
        key = f"{PODS}{dice.choice(('x', 'y'))}/{dice.randrange(30)}"
        found = await storage.get(key)
        node = dice.choice(NODES).encode() or b""
        if found is None:
            await storage.create(key, node + b"@")
        elif dice.random() < 0.3:
            await storage.delete(key, expected_revision=found.mod_revision)
        else:
            await storage.update(key, node + b"@", expected_revision=found.mod_revision)


def looked_through(cacher: Cacher, prefix: str, node: str) -> list[str]:
    return [entry.key for entry in cacher.list(prefix)[0] if node_of(entry) == node]


@pytest.mark.parametrize("seed", range(5))
async def test_candidates_are_what_looking_through_everything_finds(
    storage: MemoryStorage, cacher: Cacher, seed: int
) -> None:
    dice = random.Random(seed)
    await write(storage, dice, 60)
    assert len(cacher.candidates(PODS, "a")) == len(cacher.list(PODS)[0])  # the index begins to be made
    await asyncio.sleep(0.01)
    for _ in range(20):
        await write(storage, dice, 10)
        for node in NODES:
            for prefix in (PODS, PODS + "x/", PODS + "none/"):
                found = [entry.key for entry in cacher.candidates(prefix, node)]
                assert found == looked_through(cacher, prefix, node)
    assert [each.key for each in cacher.candidates(PODS, None)] == [each.key for each in cacher.list(PODS)[0]]
    assert list(cacher.candidates(PODS, "nobody")) == []


async def test_changes_while_it_is_made_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    yield_often(monkeypatch)
    monkeypatch.setattr("steersman.storage.cache.index.CLOCK_EVERY", 1)
    entries = {f"k{number:02}": Entry(f"k{number:02}", b"a@1", 1) for number in range(50)}
    index = FieldIndex(node_of)
    assert index.keys("a", entries) is None
    dice = random.Random(1)
    for number in range(40):
        await asyncio.sleep(0)
        key = f"k{dice.randrange(60):02}"
        if key in entries and dice.random() < 0.5:
            del entries[key]
            index.changed(key, None)
        else:
            entries[key] = Entry(key, b"b@%d" % number, number)
            index.changed(key, entries[key])
    async with asyncio.timeout(5):
        while (found := index.keys("a", entries)) is None:  # noqa: ASYNC110 - nothing tells that it is made
            await asyncio.sleep(0)
    for node in ("a", "b"):
        found = index.keys(node, entries)
        assert found is not None
        assert list(found) == sorted(key for key, entry in entries.items() if node_of(entry) == node)


async def test_of_many_that_wait_for_it_few_go_on_in_a_turn_of_the_loop(
    storage: MemoryStorage, cacher: Cacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    yield_often(monkeypatch)
    monkeypatch.setattr("steersman.storage.cache.index.CLOCK_EVERY", 1)
    await write(storage, random.Random(1), 60)
    went: list[int] = []

    async def ask(number: int) -> None:
        await cacher.indexed("a")
        went.append(number)

    asking = [asyncio.create_task(ask(number)) for number in range(100)]
    steps = await steps_of_turns(lambda: len(went), lambda: len(went) == 100)
    await asyncio.gather(*asking)
    assert max(steps) <= 2 * cacher_module.WOKEN
    assert cacher.candidates(PODS, "nobody") == []


async def test_who_waits_for_its_turn_is_not_too_late(
    storage: MemoryStorage, cacher: Cacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(IterationGate):
        async def pass_through(self, user: str = "") -> None:
            await asyncio.sleep(0.2)

    monkeypatch.setattr(cacher, "_woken", Slow(1))
    waiting = [asyncio.create_task(cacher.wait_fresh(storage.revision + 1, timeout=0.1)) for _ in range(40)]
    await asyncio.sleep(0)
    await storage.create(PODS + "x/1", b"a@")
    await asyncio.gather(*waiting)
    with pytest.raises(FutureRevision):
        await cacher.wait_fresh(storage.revision + 1, timeout=0.01)


@pytest.mark.parametrize("seed", range(5))
async def test_watchers_of_a_value_are_told_what_they_would_be_told_among_all(
    storage: MemoryStorage, cacher: Cacher, seed: int
) -> None:
    logs: dict[tuple[str, str, bool], list[tuple[str, str, int]]] = {}

    def watch(target: str, node: str, *, by_value: bool) -> Any:
        log = logs.setdefault((target, node, by_value), [])

        def deliver(event: WatchEvent) -> None:
            log.append((event.type, event.entry.key, event.revision))

        return cacher.watch(
            target,
            after_revision=None,
            accept=lambda entry: node_of(entry) == node,
            value=node if by_value else None,
            deliver=deliver,
        )

    targets = (PODS, PODS + "x/", PODS + "y/3")
    watchers = [watch(target, node, by_value=way) for target in targets for node in NODES for way in (True, False)]
    await write(storage, random.Random(seed), 200)
    for target in targets:
        for node in NODES:
            assert logs[target, node, True] == logs[target, node, False]
    assert sum(map(len, logs.values())) > 300
    for watcher in watchers:
        watcher.cancel()
    assert cacher.watchers == 0
    await write(storage, random.Random(seed), 20)


async def test_only_those_who_watch_the_value_are_asked(storage: MemoryStorage, cacher: Cacher) -> None:
    asked: list[str] = []

    def watch(node: str) -> None:
        def accept(entry: Entry) -> bool:
            asked.append(node)
            return node_of(entry) == node

        cacher.watch(PODS, after_revision=None, accept=accept, value=node, deliver=lambda _: None)

    for number in range(1000):
        watch(f"node-{number}")
    created = await storage.create(PODS + "x/1", b"node-7@")
    await storage.update(PODS + "x/1", b"node-8@", expected_revision=created.mod_revision)
    assert set(asked) == {"node-7", "node-8"}


async def test_a_cache_that_starts_over_forgets_its_index(storage: MemoryStorage, cacher: Cacher) -> None:
    await storage.create(PODS + "x/1", b"a@")
    cacher.candidates(PODS, "a")
    await asyncio.sleep(0.01)
    assert len(cacher.candidates(PODS, "b")) == 0
    await cacher.stop()
    await cacher.start()
    assert len(cacher.candidates(PODS, "b")) == 1  # everything, as it is to be made again
    await asyncio.sleep(0.01)
    assert len(cacher.candidates(PODS, "b")) == 0
