"""What counts as large, what is refused, and where large work is done."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import Iterator

import pytest

from steersman.machinery.errors.status import StatusError
from steersman.work.threads import MAX_WAITING, _Interpreter
from steersman.machinery.large_work.slow_lane import (
    MAX_OBJECTS,
    MAX_VALUES,
    SlowLane,
    check_count,
    done,
    is_large,
    is_large_protobuf,
    is_large_yaml,
)


@pytest.fixture
def lane() -> Iterator[SlowLane]:
    made = SlowLane()
    yield made
    made.close()


def test_size_or_count_makes_a_body_large() -> None:
    assert not is_large(b'{"a":"b"}')
    assert not is_large(b'"' + b"x" * 60_000 + b'"')
    assert is_large(b'"' + b"x" * 70_000 + b'"')
    assert not is_large(b"[" + b"{}," * 1_200 + b"{}]")
    assert is_large(b"[" + b"{}," * 2_200 + b"{}]")
    assert is_large(b'{"a":' * 1_500 + b"1" + b"}" * 1_500)
    assert is_large_yaml(b"- {}\n" * 500)
    assert is_large_protobuf(b"\x0a\x00" * 2_100)


def refusal(data: bytes) -> str:
    with pytest.raises(StatusError) as caught:
        check_count(data)
    assert caught.value.code == 413
    assert caught.value.reason == "RequestEntityTooLarge"
    return caught.value.message


def test_more_objects_than_any_object_has_are_refused() -> None:
    check_count(b"[" + b"{}," * (MAX_OBJECTS - 2) + b"{}]")
    text = "Request entity too large: limit is 32768 objects and lists"
    assert refusal(b"[" + b"{}," * (MAX_OBJECTS - 1) + b"{}]") == text
    assert refusal(b"[" + b"[[]]," * MAX_OBJECTS + b"0]") == text


def test_what_is_nested_too_deeply_is_left_to_who_says_so() -> None:
    check_count(b"[" * (MAX_OBJECTS + 1))
    check_count(b'{"a":' * (MAX_OBJECTS + 1))


def test_more_values_than_any_object_has_are_refused() -> None:
    check_count(b"[" + b"0," * MAX_VALUES + b"0]")
    assert refusal(b"[" + b"0," * (MAX_VALUES + 1) + b"0]") == "Request entity too large: limit is 65536 values"


def test_what_is_in_texts_does_not_count() -> None:
    many = MAX_VALUES * 2
    check_count(b'{"data":"' + b'{[,\\"{,' * many + b'"}')
    check_count(b'{"data":"\\\\","more":"' + b"{," * many + b'\\\\\\""}')
    # a text that ends in a backslash ends all the same: what follows counts
    refusal(b'{"data":"\\\\","more":[' + b"{}," * (MAX_OBJECTS + 1) + b"{}]}")


async def test_large_work_is_done_in_another_thread(lane: SlowLane) -> None:
    assert await done(None, threading.get_ident) == threading.get_ident()
    assert await done(lane, threading.get_ident) != threading.get_ident()


async def test_what_the_work_raises_is_raised(lane: SlowLane) -> None:
    with pytest.raises(ValueError, match="no number"):
        await lane.run(_raise, "no number")


def _raise(text: str) -> None:
    raise ValueError(text)


async def test_the_loop_gets_its_turns_while_the_lane_works(lane: SlowLane) -> None:
    over = threading.Event()
    work = asyncio.ensure_future(lane.run(_spin, over))
    turns = 0
    while turns < 100:
        await asyncio.sleep(0)
        turns += 1
    assert not work.done()
    over.set()
    assert await work > 0


def _spin(over: threading.Event) -> int:
    count = 0
    while not over.is_set():
        count += 1
    return count


async def test_garbage_is_not_collected_meanwhile_and_is_after_a_rest(lane: SlowLane, monkeypatch) -> None:
    monkeypatch.setattr("steersman.machinery.lane.threads._REST", 0.01)
    before = sys.getswitchinterval()
    assert not await lane.run(gc.isenabled)
    assert await lane.run(sys.getswitchinterval) < before
    assert sys.getswitchinterval() == before
    assert not gc.isenabled()
    for _ in range(1000):
        if gc.isenabled():
            break
        await asyncio.sleep(0.01)
    assert gc.isenabled()


async def test_a_step_that_takes_long_does_not_keep_others_waiting(lane: SlowLane) -> None:
    over = threading.Event()
    long = asyncio.ensure_future(lane.run(over.wait))
    assert await asyncio.wait_for(lane.run(int), 10) == 0
    over.set()
    assert await long


async def test_a_closed_lane_lets_garbage_be_collected() -> None:
    lane = SlowLane()
    await lane.run(int)
    assert not gc.isenabled()
    lane.close()
    assert gc.isenabled()


def test_a_step_that_goes_on_after_its_lane_is_closed_holds_no_collection() -> None:
    interpreter = _Interpreter()
    interpreter.works()
    interpreter.worked()  # it rests soon
    interpreter.close()
    interpreter.works()
    assert gc.isenabled()
    interpreter.worked()
    assert gc.isenabled()


class Busy:
    """A lane whose threads are held until `over` is set, so that what is asked of it waits."""

    def __init__(self, lane: SlowLane) -> None:
        self.lane = lane
        self.over = threading.Event()
        self.done: list[str] = []
        self._begun = [threading.Event(), threading.Event()]
        self._held = [asyncio.ensure_future(lane.run(self._hold, each)) for each in self._begun]

    async def begun(self) -> Busy:
        for each in self._begun:
            await asyncio.to_thread(each.wait)
        return self

    def _hold(self, begun: threading.Event) -> None:
        begun.set()
        self.over.wait()

    def ask(self, user: str, name: str) -> asyncio.Future[None]:
        return asyncio.ensure_future(self.lane.of(user).run(self.done.append, name))


async def asked(*waiting: asyncio.Future[None]) -> None:
    """Lets what was asked for get in line."""
    await asyncio.sleep(0)


async def test_users_take_turns_whatever_one_of_them_has_asked_for_before(lane: SlowLane, monkeypatch) -> None:
    busy = await Busy(lane).begun()
    waiting = [busy.ask("alice", f"a{number}") for number in range(50)]
    await asked(*waiting)
    waiting += [busy.ask("bob", "b0"), busy.ask("bob", "b1"), busy.ask("carol", "c0"), busy.ask("", "server")]
    await asked(*waiting)
    busy.over.set()
    await asyncio.gather(*waiting)
    # two threads may end neighbours in another order
    assert busy.done.index("server") <= 1
    assert max(busy.done.index("b0"), busy.done.index("c0")) <= 4
    assert busy.done.index("b1") <= 7
    alice = [name for name in busy.done if name[0] == "a"]
    assert all(abs(int(name[1:]) - at) <= 1 for at, name in enumerate(alice))


async def test_a_request_is_finished_before_others_of_its_user_are_begun(lane: SlowLane) -> None:
    busy = await Busy(lane).begun()
    first, second = lane.of("alice"), lane.of("alice")
    waiting = [asyncio.ensure_future(second.run(busy.done.append, "second")) for _ in range(4)]
    waiting += [asyncio.ensure_future(first.run(busy.done.append, "first")) for _ in range(4)]
    await asked(*waiting)
    busy.over.set()
    await asyncio.gather(*waiting)
    assert busy.done[:3] == ["first"] * 3
    assert busy.done[5:] == ["second"] * 3


async def test_a_user_of_whom_much_waits_is_told_to_try_again_and_others_are_not(lane: SlowLane) -> None:
    busy = await Busy(lane).begun()
    for number in range(MAX_WAITING):
        lane.of("alice").check_room()
        await asked(busy.ask("alice", str(number)))
    with pytest.raises(StatusError) as caught:
        lane.of("alice").check_room()
    assert (caught.value.code, caught.value.reason, caught.value.retry_after) == (429, "TooManyRequests", 1)
    assert caught.value.message == "too many requests, please try again later"
    lane.of("bob").check_room()
    await asked(*(busy.ask(f"user{number}", "") for number in range(20)))
    for number in range(20):
        lane.of(f"user{number}").check_room()
    # what a request needs once it has begun is done all the same
    last = busy.ask("alice", "last")
    busy.over.set()
    await last
    assert busy.done.count("last") == 1


async def test_many_users_have_less_room_each(lane: SlowLane) -> None:
    busy = await Busy(lane).begun()
    waiting = [busy.ask(f"user{number}", "") for number in range(30) for _ in range(8)]
    await asked(*waiting)
    with pytest.raises(StatusError, match="too many requests"):
        lane.of("user7").check_room()
    lane.of("another").check_room()
    busy.over.set()
    await asyncio.gather(*waiting)
    lane.of("user7").check_room()


async def test_what_nobody_waits_for_any_more_is_forgotten_and_not_done(lane: SlowLane) -> None:
    busy = await Busy(lane).begun()
    waiting = [busy.ask("alice", str(number)) for number in range(MAX_WAITING)]
    await asked(*waiting)
    for each in waiting[1:]:
        each.cancel()
    await asyncio.gather(*waiting[1:], return_exceptions=True)
    lane.of("alice").check_room()
    busy.over.set()
    await waiting[0]
    assert await lane.run(len, busy.done) == 1


async def test_a_closed_lane_keeps_nobody_waiting(lane: SlowLane) -> None:
    busy = await Busy(lane).begun()
    waiting = busy.ask("alice", "never")
    await asked(waiting)
    lane.of("bob").close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    busy.over.set()
    assert not busy.done


async def test_an_error_does_not_outlive_its_request(lane: SlowLane) -> None:
    class Large:
        pass

    def fail() -> None:
        large = Large()
        alive.append(weakref.ref(large))
        raise ValueError("no number")

    alive: list[weakref.ref[Large]] = []
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            await lane.run(fail)
        # a thread has let go of it before it takes what is next; the other may take that in its place for a while
        for _ in range(100):
            await asyncio.gather(lane.run(int), lane.run(int))
            if alive[0]() is None:
                break
        assert alive[0]() is None
    finally:
        gc.enable()
