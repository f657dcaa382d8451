"""Periodic work goes on whatever happens in one round, and ends when it is stopped."""

from __future__ import annotations

import asyncio

import pytest

from steersman.testing.clock import Clock
from steersman.work import offloading
from steersman.work.periodic import Periodic


class Rounds:
    """Counts rounds. Each round does what is given for it, and later ones do nothing."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.count = 0
        self._errors = errors
        self._changed = asyncio.Condition()

    async def __call__(self) -> None:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()
        if self.count <= len(self._errors) and (error := self._errors[self.count - 1]) is not None:
            raise error

    async def reached(self, count: int) -> None:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: self.count >= count)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, bool]]:
    return [(each.levelname, each.getMessage(), each.exc_info is not None) for each in caplog.records]


async def test_rounds_come_until_the_end(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds()
    periodic = Periodic("some work", rounds, 0.001)
    periodic.start()
    await rounds.reached(3)
    await periodic.stop()
    before = rounds.count
    await asyncio.sleep(0.01)
    assert (rounds.count, lines(caplog)) == (before, [])


async def test_a_fault_is_logged_with_where_it_came_from_and_the_next_round_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rounds = Rounds(ValueError("a fault"), None)
    periodic = Periodic("some work", rounds, 0)
    periodic.start()
    await rounds.reached(2)
    await periodic.stop()
    assert lines(caplog) == [("ERROR", "some work failed and is tried again", True)]


async def test_an_expected_error_is_one_line_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    caused = OSError("why")
    caused.__cause__ = OSError("the disk is away")
    rounds = Rounds(OSError("not now"), OSError("not now"), caused)
    periodic = Periodic("some work", rounds, 0, expected=(OSError,))
    periodic.start()
    await rounds.reached(4)
    await periodic.stop()
    why = ["not now", "not now", "the disk is away"]
    assert lines(caplog) == [("WARNING", f"some work failed and is tried again: {each}", False) for each in why]


async def test_a_line_that_says_the_same_is_left_out_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    rounds = Rounds(*[OSError("not now")] * 9, OSError("nor later"))
    periodic = Periodic("some work", rounds, 10, expected=(OSError,), repeats_line_after=60, is_upkeep=False)
    periodic.start()
    await clock.advance(seconds=105)
    await periodic.stop()
    assert [message.rpartition(": ")[2] for _, message, _ in lines(caplog)] == ["not now", "not now", "nor later"]


async def test_work_outlives_a_wait_for_something_that_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds(asyncio.CancelledError())
    periodic = Periodic("some work", rounds, 0)
    periodic.start()
    await rounds.reached(2)
    await periodic.stop()
    assert lines(caplog) == [("ERROR", "some work failed and is tried again", True)]


async def test_a_function_tells_each_pause() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    pauses, began, rounds = iter([60, 600, 3600]), loop.time(), list[int]()

    async def work() -> None:
        rounds.append(round(loop.time() - began))

    periodic = Periodic("some work", work, lambda: next(pauses, 1e6), is_upkeep=False)
    periodic.start()
    await clock.advance(hours=2)
    await periodic.stop()
    assert rounds == [60, 660, 4260]


@pytest.mark.parametrize(("is_upkeep", "least", "most"), [(True, 1, 200), (False, 360, 360)])
async def test_a_clock_that_is_moved_leaves_out_rounds_of_upkeep_only(is_upkeep: bool, least: int, most: int) -> None:
    clock = Clock()
    rounds = Rounds()
    periodic = Periodic("some work", rounds, 10, is_upkeep=is_upkeep)
    periodic.start()
    await clock.advance(seconds=3605)
    await periodic.stop()
    assert least <= rounds.count <= most


async def test_a_wake_has_the_work_done_at_once_and_again_while_it_is_done() -> None:
    begun, go_on = asyncio.Semaphore(0), asyncio.Semaphore(0)
    done = 0

    async def work() -> None:
        nonlocal done
        begun.release()
        await go_on.acquire()
        done += 1

    periodic = Periodic("some work", work, 3600)
    periodic.start()
    periodic.wake()
    async with asyncio.timeout(20):
        await begun.acquire()
        periodic.wake()
        periodic.wake()
        go_on.release()
        await begun.acquire()
        go_on.release()
    for _ in range(10):
        await asyncio.sleep(0)
    assert done == 2
    await periodic.stop()


@pytest.mark.parametrize("turns", range(6))
async def test_work_that_is_woken_as_it_is_stopped_ends(turns: int) -> None:
    periodic = Periodic("some work", Rounds(), 60)
    periodic.start()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    periodic.wake()
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.wait_for(periodic.stop(), 5)


async def test_it_can_be_a_part_of_a_group_and_ends_with_it() -> None:
    rounds = Rounds()

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(Periodic("some work", rounds, 0.001).run())
            await rounds.reached(2)
            raise ValueError("the end of the group")

    with pytest.raises(ExceptionGroup):
        await both()
    before = rounds.count
    await asyncio.sleep(0.01)
    assert rounds.count == before


async def test_it_uses_the_servers_account_for_every_caller() -> None:
    users: list[str] = []

    async def work() -> None:
        users.append(offloading.current().user)

    periodic = Periodic("some work", work, 3600)
    with offloading.bound(offloading.current().for_user("somebody")):
        periodic.start()
    periodic.wake()
    async with asyncio.timeout(20):
        while not users:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
    await periodic.stop()
    assert users == [offloading.SERVER]
