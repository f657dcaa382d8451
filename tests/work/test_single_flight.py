"""Single flight: one task for all callers, even if a caller leaves, fails or is cancelled."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Iterator

import pytest

from steersman.work.offloading import Account, bound, current
from steersman.work.single_flight import Flight, SingleFlight, results
from steersman.work.threads import WorkerThreads
from tests import ROOT

SOURCES = ROOT / "src" / "steersman"
SHIELDED = re.compile(r"\b(?:asyncio\.shield|shielded)\(")
NOT_MADE_FOR_ALL = {
    "audit/backends/buffered.py": "the one task of a backend ends",
    "audit/trail.py": "an event is recorded whatever becomes of its request",
    "authentication/jwt/authenticator.py": "an issuer is looked for from the start on",
    "controlplane/workers/process.py": "a process says that it is ready",
    "net/link.py": "room to write",
    "net/upgrade.py": "bytes to read",
    "storage/sqlite/checkpoint.py": "a step of a thread ends",
    "storage/sqlite/store.py": "a file is opened by a thread, and closed if nobody waits any more",
    "store/uninterrupted.py": "a write has one asker",
}
"""Files that shield something other than a result shared by all callers, and what they shield."""


class ControlledWork:
    """Work that ends when a test says so, and counts how often it was started and cancelled."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> str:
        self.begun += 1
        try:
            return await asyncio.shield(self.end)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def run_loop(count: int = 5) -> None:
    """Run the event loop until everything that can go on has done so."""
    for _ in range(count):
        await asyncio.sleep(0)


async def cancel_and_wait(caller: asyncio.Task[str]) -> None:
    """Cancel a caller, and wait until it has left."""
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


@pytest.fixture
async def making() -> ControlledWork:
    return ControlledWork()


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    made = WorkerThreads()
    yield made
    made.close()


async def test_a_result_is_made_once_for_all_who_ask_meanwhile_and_again_for_the_next(making: ControlledWork) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    caller = [asyncio.ensure_future(flights.do("key", making)) for _ in range(3)]
    await run_loop()
    assert (making.begun, len(flights)) == (1, 1)
    making.end.set_result("made")
    assert await asyncio.gather(*caller) == ["made"] * 3
    assert len(flights) == 0
    assert await flights.do("key", making) == "made"
    assert making.begun == 2


async def test_keys_are_made_each_by_itself(making: ControlledWork) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    making.end.set_result("made")
    await asyncio.gather(flights.do("one", making), flights.do("other", making))
    assert making.begun == 2


async def test_the_task_is_begun_at_once_and_its_result_is_there_for_who_awaits_it_later(
    making: ControlledWork,
) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    flight = flights.begin("key", making)
    assert flights.begin("key", making) is flight
    making.end.set_result("made")
    await flight.ended()
    assert flight.is_over
    assert not flight.has_failed
    assert [await flight, await flight] == ["made", "made"]


@pytest.mark.parametrize("outlives", [True, False])
async def test_the_first_asker_that_leaves_does_not_end_it_for_the_others(
    making: ControlledWork, outlives: bool
) -> None:
    flights: SingleFlight[str, str] = SingleFlight(outlives_callers=outlives)
    first, second = (asyncio.ensure_future(flights.do("key", making)) for _ in range(2))
    await run_loop()
    await cancel_and_wait(first)
    making.end.set_result("made")
    assert await second == "made"
    assert (making.begun, making.cancelled) == (1, 0)


async def test_it_goes_on_when_every_asker_has_left_and_serves_who_comes_then(making: ControlledWork) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    caller = asyncio.ensure_future(flights.do("key", making))
    await run_loop()
    await cancel_and_wait(caller)
    again = asyncio.ensure_future(flights.do("key", making))
    await run_loop()
    making.end.set_result("made")
    assert await again == "made"
    assert (making.begun, making.cancelled) == (1, 0)


@pytest.mark.parametrize("steps", range(5))
async def test_it_is_cancelled_with_its_last_asker_if_it_does_not_outlive_them(
    making: ControlledWork, steps: int
) -> None:
    flights: SingleFlight[str, str] = SingleFlight(outlives_callers=False)
    caller = asyncio.ensure_future(flights.do("key", making))
    await run_loop(steps)
    await cancel_and_wait(caller)
    assert len(flights) == 0
    await run_loop()
    assert making.cancelled == making.begun


async def test_who_comes_as_it_is_cancelled_has_another_begun(making: ControlledWork) -> None:
    flights: SingleFlight[str, str] = SingleFlight(outlives_callers=False)
    first = asyncio.ensure_future(flights.do("key", making))
    await run_loop()
    first.cancel()
    first.add_done_callback(lambda _: again.append(asyncio.ensure_future(flights.do("key", making))))
    again: list[asyncio.Task[str]] = []
    await run_loop()
    assert (making.begun, making.cancelled, len(flights)) == (2, 1, 1)
    making.end.set_result("made")
    assert await again[0] == "made"
    assert len(flights) == 0


async def test_all_who_wait_get_the_error_and_the_next_has_it_made_again(making: ControlledWork) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    error = ValueError("broken")
    caller = [asyncio.ensure_future(flights.do("key", making)) for _ in range(2)]
    await run_loop()
    making.end.set_exception(error)
    assert await asyncio.gather(*caller, return_exceptions=True) == [error, error]
    making.end = asyncio.get_running_loop().create_future()
    making.end.set_result("made")
    assert await flights.do("key", making) == "made"


async def test_what_fails_before_it_waits_fails_as_all_else() -> None:
    def make() -> asyncio.Future[str]:
        raise ValueError("at once")

    flights: SingleFlight[str, str] = SingleFlight()
    with pytest.raises(ValueError, match="at once"):
        await flights.do("key", make)
    assert len(flights) == 0


async def test_an_unawaited_error_is_dropped(making: ControlledWork) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    flights: SingleFlight[str, str] = SingleFlight()
    caller = asyncio.ensure_future(flights.do("key", making))
    await run_loop()
    await cancel_and_wait(caller)
    making.end.set_exception(ValueError("broken"))
    making.end.exception()
    await run_loop()
    assert len(flights) == 0
    del caller
    gc.collect()
    assert reported == []


async def test_an_error_is_freed_without_the_collector() -> None:
    class Broken(Exception):
        pass

    async def make() -> str:
        raise Broken

    flights: SingleFlight[str, str] = SingleFlight()
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Broken) as caught:
            await flights.do("key", make)
        del caught
        await run_loop()
        assert not any(type(each) is Broken for each in gc.get_objects())
    finally:
        gc.enable()


async def test_who_waits_for_what_is_cancelled_is_cancelled(making: ControlledWork) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    caller = asyncio.ensure_future(flights.do("key", making))
    await run_loop()
    await flights.stop()
    assert (making.cancelled, len(flights)) == (1, 0)
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_what_is_cancelled_before_its_first_step_is_forgotten_and_is_not_begun(making: ControlledWork) -> None:
    ended: list[Flight[str]] = []
    flight = Flight(making, on_end=ended.append)
    flight.cancel()
    assert flight.is_over
    assert flight.has_failed
    await flight.ended()
    assert flight.is_cancelled
    assert (making.begun, ended) == (0, [flight])


async def test_a_result_is_handed_on_also_when_it_is_there_and_an_error_is_not(making: ControlledWork) -> None:
    taken: list[str] = []
    flight, broken = Flight(making), Flight(ControlledWork())
    flight.on_result(taken.append)
    broken.on_result(taken.append)
    broken.cancel()
    making.end.set_result("made")
    await flight
    await run_loop()
    flight.on_result(taken.append)
    await run_loop()
    assert taken == ["made", "made"]


async def test_of_several_keys_those_that_are_not_under_way_are_made_together(making: ControlledWork) -> None:
    flights: SingleFlight[int, str] = SingleFlight()
    asked: list[list[int]] = []

    async def make(keys: list[int]) -> str:
        asked.append(keys)
        return await making()

    first = flights.begin(2, making)
    both = flights.begin_all([1, 2, 3], make)
    assert both == [first, flights.get(1)]
    assert flights.get(1) is flights.get(3) is not first
    assert flights.begin_all([3, 1], make) == [flights.get(1)]
    making.end.set_result("made")
    assert await results(both) == ["made", "made"]
    assert (asked, len(flights)) == ([[1, 3]], 0)


@pytest.mark.parametrize("steps", range(5))
async def test_who_waits_for_several_leaves_them_all_at_once(steps: int) -> None:
    makings = [ControlledWork() for _ in range(2)]
    flights: SingleFlight[int, str] = SingleFlight(outlives_callers=False)

    async def ask() -> list[str]:
        return await results([flights.begin(number, each) for number, each in enumerate(makings)])

    caller = asyncio.ensure_future(ask())
    await run_loop(steps)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await run_loop()
    assert [each.begun for each in makings] == [each.cancelled for each in makings]
    assert len(flights) == 0


async def test_results_of_several_come_in_order_and_the_first_error_ends_the_rest() -> None:
    one, other = ControlledWork(), ControlledWork()
    flights: SingleFlight[int, str] = SingleFlight(outlives_callers=False)
    caller = asyncio.ensure_future(results([flights.begin(1, one), flights.begin(2, other)]))
    await run_loop()
    other.end.set_result("other")
    one.end.set_result("one")
    assert await caller == ["one", "other"]

    one.end, other.end = (asyncio.get_running_loop().create_future() for _ in range(2))
    caller = asyncio.ensure_future(results([flights.begin(1, one), flights.begin(2, other)]))
    await run_loop()
    one.end.set_exception(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await caller
    await run_loop()
    assert other.cancelled == 1


async def test_the_task_is_the_servers_and_not_the_first_askers(threads: WorkerThreads) -> None:
    async def user() -> str:
        return current().user

    flights: SingleFlight[str, str] = SingleFlight()
    with bound(Account(threads, "alice", keeps_size=True)):
        assert await flights.do("key", user) == ""
        assert current().user == "alice"


def test_what_is_made_once_for_all_is_made_here_alone() -> None:
    """A task in a dict or attribute that others wait for behind a shield is a single flight made by hand."""
    shielding = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if SHIELDED.search(path.read_text()) and path.name != "shielding.py"
    }
    assert shielding == NOT_MADE_FOR_ALL.keys()
