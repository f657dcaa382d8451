"""What counts as large, what is refused, and where large work is done."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from steersman.machinery.errors import StatusError
from steersman.machinery.slow_lane import (
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


async def test_garbage_is_not_collected_meanwhile_and_is_afterwards(lane: SlowLane) -> None:
    before = sys.getswitchinterval()
    assert not await lane.run(gc.isenabled)
    assert gc.isenabled()
    assert await lane.run(sys.getswitchinterval) < before
    assert sys.getswitchinterval() == before


async def test_a_lane_that_is_never_empty_lets_a_collection_through(lane: SlowLane, monkeypatch) -> None:
    monkeypatch.setattr("steersman.machinery.slow_lane._COLLECTION_EVERY", -1.0)
    collected = threading.Event()
    callback = lambda phase, info: collected.set()  # noqa: E731
    begun, over = threading.Event(), threading.Event()
    other = asyncio.ensure_future(lane.run(lambda: (begun.set(), over.wait())))
    await asyncio.to_thread(begun.wait)
    gc.callbacks.append(callback)
    try:
        await lane.run(int)
    finally:
        gc.callbacks.remove(callback)
        over.set()
        await other
    assert collected.is_set()
