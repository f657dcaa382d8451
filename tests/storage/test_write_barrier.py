"""Requests that wait for all that was committed before they came."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from steersman.storage.interface import StorageUnavailable
from steersman.storage.memory import MemoryStorage
from steersman.storage.write_barrier import WriteBarrier


class Shared(MemoryStorage):
    """A storage that others write to; questions are answered when they are let."""

    knows_newest = False
    has_other_servers = True

    def __init__(self) -> None:
        super().__init__(compaction_interval=0, lease_interval=0)
        self.asked = 0
        self.ahead = 0
        self.answers = asyncio.Event()
        self.tells = asyncio.Event()
        self.is_away = False

    async def current_revision(self) -> int:
        self.asked += 1
        await self.answers.wait()
        if self.is_away:
            raise StorageUnavailable("no connection")
        return self.revision + self.ahead

    async def wait_until(self, revision: int) -> None:
        await self.tells.wait()


@pytest.fixture
async def storage() -> AsyncIterator[Shared]:
    made = Shared()
    yield made
    await made.close()


@pytest.fixture
async def barrier(storage: Shared) -> AsyncIterator[WriteBarrier]:
    made = WriteBarrier(storage, patience=0.01)
    yield made
    await made.stop()


def wait_for_newest(barrier: WriteBarrier) -> asyncio.Future[int]:
    """A request that has to wait."""
    found = barrier.wait_for_newest()
    assert not isinstance(found, int)
    return found


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_requests_that_come_while_a_question_is_under_way_share_the_next(
    storage: Shared, barrier: WriteBarrier
) -> None:
    first = wait_for_newest(barrier)
    await turns()
    others = [wait_for_newest(barrier) for _ in range(20)]
    storage.answers.set()
    assert await asyncio.gather(first, *others) == [storage.revision] * 21
    assert storage.asked == 2


async def test_few_of_many_go_on_in_one_turn(storage: Shared, barrier: WriteBarrier) -> None:
    waiting = [wait_for_newest(barrier) for _ in range(100)]
    storage.answers.set()
    done = [0]
    while done[-1] < 100:
        await asyncio.sleep(0)
        done.append(sum(each.done() for each in waiting))
    assert max(after - before for before, after in itertools.pairwise(done)) <= 16


async def test_a_request_waits_for_what_others_have_committed(storage: Shared, barrier: WriteBarrier) -> None:
    storage.answers.set()
    storage.ahead = 3
    request = wait_for_newest(barrier)
    await turns()
    assert not request.done()
    storage.tells.set()
    assert await request == storage.revision + 3


async def test_who_has_gone_keeps_nobody_waiting(storage: Shared, barrier: WriteBarrier) -> None:
    gone, stays = wait_for_newest(barrier), wait_for_newest(barrier)
    gone.cancel()
    storage.answers.set()
    assert await stays == storage.revision


@pytest.mark.parametrize("fault", ["away", "no answer", "told nothing"])
async def test_nobody_waits_while_storage_says_nothing_and_all_do_when_it_is_back(
    storage: Shared, barrier: WriteBarrier, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage.is_away = fault == "away"
    storage.ahead = 1
    if fault != "no answer":
        storage.answers.set()
    assert await wait_for_newest(barrier) == 0
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    asked = storage.asked
    assert [barrier.wait_for_newest() for _ in range(10)] == [0] * 10
    await turns()
    assert storage.asked <= asked + 1  # one question at a time
    storage.is_away = False
    storage.answers.set()
    storage.tells.set()
    barrier.wait_for_newest()
    await turns(10)
    assert not barrier.is_silent
    assert await wait_for_newest(barrier) == storage.revision + 1
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 1


async def test_at_the_end_everybody_goes_on(storage: Shared, barrier: WriteBarrier) -> None:
    asking = wait_for_newest(barrier)
    await turns()
    waiting = wait_for_newest(barrier)
    await barrier.stop()
    assert list(await asyncio.gather(asking, waiting)) == [0, 0]


async def test_a_server_that_is_alone_asks_nothing_until_it_is_alone_no_more(storage: Shared) -> None:
    is_alone = True
    barrier = WriteBarrier(storage, is_alone=lambda: is_alone, patience=0.01)
    await storage.create("/a", b"1")
    assert barrier.wait_for_newest() == storage.revision == 2
    assert storage.asked == 0
    is_alone = False
    storage.answers.set()
    assert await wait_for_newest(barrier) == 2
    assert storage.asked == 1
    await barrier.stop()
