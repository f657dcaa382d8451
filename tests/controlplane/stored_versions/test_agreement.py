"""Servers start and stop in any order, and none stores a version that another running server cannot read."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import Any

import msgspec
import pytest

from steersman.controlplane.stored_versions.agreement import Agreement
from steersman.controlplane.stored_versions.records import SERVERS, STORE, Records, Server, Store
from steersman.machinery.identity.schema import GroupResource
from steersman.storage.interface import Event, KeyValue, Range, StorageFormatError
from steersman.storage.memory import MemoryStorage
from tests.example_counts import examples

THINGS = GroupResource("example.com", "things")
NAME = str(THINGS)
OLD, BOTH, NEW = ("v1",), ("v2", "v1"), ("v3", "v2")


class Form:
    """The members of a StoredForm that the agreement uses."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.preferred = self.written = names[0]

    def reads(self, version: str) -> bool:
        return version in self.names

    def write_as(self, version: str) -> None:
        self.written = version


class Shuffled(MemoryStorage):
    """A storage that runs other tasks before and after each call."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(compaction_interval=0, lease_interval=0)
        self._dice = dice

    async def pause(self) -> None:
        for _ in range(self._dice.choice((0, 0, 1, 3, 8))):
            await asyncio.sleep(0)

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        await self.pause()
        found = await super().get(key, revision=revision)
        await self.pause()
        return found

    async def range(self, prefix: str, **more: Any) -> Range:
        await self.pause()
        found = await super().range(prefix, **more)
        await self.pause()
        return found

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        await self.pause()
        made = await super().create(key, value, ttl=ttl)
        await self.pause()
        return made

    async def update(self, key: str, value: bytes, **more: Any) -> KeyValue:
        await self.pause()
        made = await super().update(key, value, **more)
        await self.pause()
        return made

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        await self.pause()
        return await super().delete(key, expected_revision=expected_revision)


class Cluster:
    """Servers on one store. `objects` are the stored versions by key."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage
        self.objects: dict[int, str] = {}
        self.running: dict[str, tuple[Form, Agreement]] = {}
        self._numbers = count()

    async def start(self, names: tuple[str, ...]) -> str:
        """Start a server and return its name. Raises StorageFormatError."""
        form, name = Form(names), f"{next(self._numbers):03}-{'+'.join(names)}"

        async def rewrite(_: GroupResource) -> bool:
            while stale := [key for key, version in self.objects.items() if version != form.written]:
                for key in stale:
                    await asyncio.sleep(0)
                    await self.store(form, key)
            return True

        agreement = Agreement(Records(self.storage, name), {THINGS: form}, rewrite, "1")  # type: ignore[dict-item]
        await agreement.join()
        self.running[name] = form, agreement
        return name

    async def store(self, form: Form, key: int) -> None:
        """Store an object as a server does."""
        for other, _ in self.running.values():
            assert other.reads(form.written), f"a server that reads {other.names} is given {form.written}"
        self.objects[key] = form.written

    async def write(self, name: str) -> None:
        await self.store(self.running[name][0], random.randrange(20))

    async def renew(self, name: str) -> None:
        if name in self.running:
            await self.running[name][1].renew()

    async def stop(self, name: str) -> None:
        await self.running.pop(name)[1].leave()

    async def versions(self) -> list[str]:
        """Return the versions that may be stored, according to the store."""
        store, _ = await Records(self.storage, "").store()
        return store.versions.get(NAME, [])

    async def settle(self) -> None:
        for _ in range(4):
            for name in list(self.running):
                await self.renew(name)
            for _, agreement in self.running.values():
                if agreement.rewriting is not None:
                    await agreement.rewriting

    def written(self) -> list[str]:
        return [form.written for form, _ in self.running.values()]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(MemoryStorage(compaction_interval=0, lease_interval=0))


async def test_the_newer_one_writes_what_the_older_one_reads_until_that_is_gone(cluster: Cluster) -> None:
    old = await cluster.start(OLD)
    new = await cluster.start(BOTH)
    await cluster.write(new)
    await cluster.write(old)
    await cluster.settle()
    assert (cluster.written(), await cluster.versions()) == (["v1", "v1"], ["v1"])
    await cluster.stop(old)
    await cluster.renew(new)
    assert (cluster.written(), await cluster.versions()) == (["v2"], ["v1", "v2"])
    assert set(cluster.objects.values()) == {"v1"}  # what lies there waits until all have written v2 for a while
    await cluster.settle()
    assert (set(cluster.objects.values()), await cluster.versions()) == ({"v2"}, ["v2"])
    with pytest.raises(StorageFormatError, match=r"a newer server has stored things\.example\.com as v2, which"):
        await cluster.start(OLD)
    assert (await cluster.storage.range(SERVERS)).items[0].key == SERVERS + new
    newest = await cluster.start(NEW)
    await cluster.settle()
    assert cluster.written() == ["v2", "v2"]
    await cluster.stop(new)
    await cluster.settle()
    assert (cluster.written(), await cluster.versions()) == (["v3"], ["v3"])
    assert newest in cluster.running


async def test_one_that_was_killed_counts_until_its_key_vanishes(cluster: Cluster) -> None:
    old = await cluster.start(OLD)
    new = await cluster.start(BOTH)
    del cluster.running[old]
    await cluster.settle()
    assert cluster.written() == ["v1"]
    record = await cluster.storage.get(SERVERS + old)
    assert record is not None
    await cluster.storage.delete(record.key, expected_revision=record.mod_revision)
    await cluster.settle()
    assert (cluster.written(), await cluster.versions()) == (["v2"], ["v2"])
    assert new in cluster.running


async def test_one_that_was_away_says_that_it_cannot_read(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    old = await cluster.start(OLD)
    await cluster.start(BOTH)
    record = await cluster.storage.get(SERVERS + old)
    assert record is not None
    await cluster.storage.delete(record.key, expected_revision=record.mod_revision)
    away = cluster.running.pop(old)
    await cluster.settle()
    assert await cluster.versions() == ["v2"]
    for _ in range(2):
        await away[1].renew()
    assert caplog.text.count("a newer server stores things.example.com as v2, which this one cannot read") == 1
    assert set(await cluster.versions()) == {"v1", "v2"}  # what it writes is told


async def test_a_record_that_cannot_be_read_is_told_without_a_traceback(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    _, agreement = cluster.running[await cluster.start(OLD)]
    record = await cluster.storage.get(STORE)
    assert record is not None
    await cluster.storage.update(STORE, b"no record", expected_revision=record.mod_revision)
    agreement.begin()
    agreement.rounds.wake()
    async with asyncio.timeout(10):
        while "tried again" not in caplog.text:  # noqa: ASYNC110 - nothing tells that it was logged
            await asyncio.sleep(0)
    await agreement.leave()
    assert f"the agreement on stored versions failed and is tried again: {STORE} cannot be read" in caplog.text
    assert "Traceback" not in caplog.text


async def test_servers_without_the_resource_do_not_matter(cluster: Cluster) -> None:
    other = Agreement(Records(cluster.storage, "other"), {}, lambda _: asyncio.sleep(0, True), "1")
    await other.join()
    await cluster.start(BOTH)
    await cluster.settle()
    assert (cluster.written(), await cluster.versions()) == (["v2"], ["v2"])


async def test_nothing_is_forgotten_that_somebody_turns_to_meanwhile(cluster: Cluster) -> None:
    """The first server searches the storage for a version that it could forget; meanwhile the second starts using
    it.
    """
    old = Records(cluster.storage, "the old one")
    await old.announce(Server(version="1", reads={NAME: list(OLD)}, writes={NAME: "v1"}))
    first, second = await cluster.start(BOTH), await cluster.start(BOTH)
    await cluster.settle()
    await Records(cluster.storage, "").change(lambda store: store.versions[NAME].append("v2"))
    agreement = cluster.running[first][1]
    looked, may_go_on = asyncio.Event(), asyncio.Event()

    async def look(_: GroupResource) -> bool:
        looked.set()
        await may_go_on.wait()
        return True

    agreement._rewrite = look
    await cluster.renew(first)
    await looked.wait()
    await old.leave()
    await cluster.renew(second)
    await cluster.write(second)
    may_go_on.set()
    assert agreement.rewriting is not None
    await agreement.rewriting
    assert set(await cluster.versions()) == {"v1", "v2"}


async def test_the_others_learn_that_one_turns_before_it_does(cluster: Cluster) -> None:
    old = await cluster.start(OLD)
    new = await cluster.start(BOTH)
    await cluster.settle()
    await cluster.stop(old)
    begin = cluster.storage.revision
    await cluster.renew(new)
    written = [
        (event.key, msgspec.json.decode(event.current.value))
        for event in cluster.storage._log
        if event.revision > begin and event.current is not None
    ]
    assert [key for key, _ in written] == [SERVERS + new, SERVERS + new, STORE]
    assert [each["writes"] for _, each in written[:2]] == [{NAME: "v1"}, {}]


@pytest.mark.parametrize("seed", range(10))
async def test_of_two_that_have_nothing_in_common_one_at_most_starts(seed: int) -> None:
    cluster = Cluster(Shuffled(random.Random(seed)))
    both = await asyncio.gather(cluster.start(OLD), cluster.start(NEW), return_exceptions=True)
    assert sum(isinstance(each, StorageFormatError) for each in both) >= 1
    assert len(cluster.running) <= 1


class Crowd:
    """Concurrent events: servers start, stop, write, and have their rounds, one round at a time each."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.cluster = Cluster(Shuffled(dice))
        self.starting: set[asyncio.Task[None]] = set()
        self.renewing: dict[str, asyncio.Task[None]] = {}
        self.refused = 0

    async def _start(self) -> None:
        try:
            await self.cluster.start(self.dice.choice((OLD, BOTH, BOTH, NEW)))
        except StorageFormatError:
            self.refused += 1

    async def act(self) -> None:
        running = list(self.cluster.running)
        action = self.dice.choice("swwwrrre")
        if action == "s" and len(running) < 5:
            self.starting.add(asyncio.create_task(self._start()))
        elif running:
            name = self.dice.choice(running)
            if action == "w":
                await self.cluster.write(name)
            elif action == "r" and (name not in self.renewing or self.renewing[name].done()):
                self.renewing[name] = asyncio.create_task(self.cluster.renew(name))
            elif action == "e":
                await self._end(name)

    async def _end(self, name: str) -> None:
        renewing = self.renewing.pop(name, None)
        if renewing is not None:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
        await self.cluster.stop(name)

    def check(self) -> None:
        """Check that the store names every version that is stored or written."""
        stored = self.cluster.storage._values.get(STORE)
        said = set(msgspec.json.decode(stored.value, type=Store).versions[NAME]) if stored is not None else set()
        assert set(self.cluster.written()) | set(self.cluster.objects.values()) <= said

    async def end(self) -> None:
        for task in [*self.starting, *self.renewing.values()]:
            await asyncio.gather(task, return_exceptions=task.cancelled())
        for name in list(self.cluster.running):
            await self._end(name)


@pytest.mark.parametrize("seed", range(examples(40)))
async def test_in_any_order(seed: int) -> None:
    crowd = Crowd(random.Random(seed))
    for _ in range(200):
        await crowd.act()
        for _ in range(crowd.dice.choice((0, 1, 5, 30))):
            await asyncio.sleep(0)
            crowd.check()
    await crowd.end()
