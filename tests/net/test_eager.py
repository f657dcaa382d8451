"""Handlers that start in the same iteration as their request: asyncio works in them as in a task."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from steersman.net import eager

VARIABLE = contextvars.ContextVar("variable", default="outer")


def start(coroutine: Any) -> Any:
    return eager.start(asyncio.get_running_loop(), coroutine)


async def test_what_never_waits_needs_no_task() -> None:
    seen = []

    async def work() -> None:
        seen.append(1)

    assert start(work()) is None
    assert seen == [1]


async def test_what_it_raises_before_its_first_wait_comes_out() -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        start(work())
    assert asyncio.current_task() is not None


async def test_it_goes_on_as_a_task_after_its_first_wait() -> None:
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
    seen = []

    async def work() -> None:
        seen.append(await first)
        seen.append(await second)
        await asyncio.sleep(0)
        seen.append("end")

    task = start(work())
    first.set_result(1)
    second.set_result(2)
    await task
    assert seen == [1, 2, "end"]


async def test_a_failure_that_is_awaited_arrives() -> None:
    future = asyncio.get_running_loop().create_future()

    async def work() -> None:
        with pytest.raises(KeyError):
            await future

    task = start(work())
    future.set_exception(KeyError("x"))
    await task


@pytest.mark.parametrize("waits_before", [False, True])
async def test_a_timeout_entered_before_or_after_the_first_wait_works(waits_before: bool) -> None:
    seen = []

    async def work() -> None:
        if waits_before:
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timeout")
        await asyncio.sleep(0)
        seen.append("goes on")

    await start(work())
    assert seen == ["timeout", "goes on"]


async def test_a_timeout_around_several_waits_works() -> None:
    cancelled: list[bool] = []

    async def work() -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
            async with asyncio.timeout(0.01):
                try:
                    await asyncio.sleep(1)
                finally:
                    cancelled.append(True)

    with pytest.raises(TimeoutError):
        await start(work())
    assert cancelled == [True]


async def test_a_task_group_entered_before_the_first_wait_works() -> None:
    seen = []

    async def fail() -> None:
        raise KeyError("x")

    async def work() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                await asyncio.Event().wait()
        except* KeyError:
            seen.append("failed")

    await start(work())
    assert seen == ["failed"]


async def test_cancelling_at_once_reaches_what_it_waits_for() -> None:
    future = asyncio.get_running_loop().create_future()
    seen = []

    async def work() -> None:
        try:
            await future
        except asyncio.CancelledError:
            seen.append(future.cancelled())
            raise

    task = start(work())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [True]
    assert task.cancelled()


async def test_cancelling_itself_before_the_first_wait_works() -> None:
    seen = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            seen.append(asyncio.current_task() is not None)
            raise

    task = start(work())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [True]


async def test_context_variables_stay_its_own() -> None:
    async def work() -> None:
        VARIABLE.set("inner")
        await asyncio.sleep(0)
        assert VARIABLE.get() == "inner"

    task = start(work())
    assert VARIABLE.get() == "outer"
    await task
    assert VARIABLE.get() == "outer"


async def test_the_caller_is_the_current_task_again() -> None:
    async def work() -> None:
        await asyncio.sleep(0)

    me = asyncio.current_task()
    task = start(work())
    assert asyncio.current_task() is me
    await task
