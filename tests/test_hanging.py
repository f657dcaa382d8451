"""Tests of the output about hanging tasks."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.hanging import Watch, tasks


async def innermost() -> None:
    await asyncio.Event().wait()


async def outermost() -> None:
    await innermost()


async def test_every_task_is_told_with_all_that_it_waits_for() -> None:
    task = asyncio.create_task(outermost(), name="stuck")
    await asyncio.sleep(0)
    text = await asyncio.to_thread(tasks)
    task.cancel()
    stack = text[text.index("Task stuck:") :]
    assert stack.index("in outermost") < stack.index("in innermost") < stack.index("in Event.wait")
    assert "test_every_task_is_told" in text


async def test_a_test_that_takes_too_long_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.hanging.LOOK_EVERY", 0.005)
    read, write = os.pipe()
    watch = Watch(0.01, write)
    os.close(write)
    watch.pytest_runtest_logstart("tests/test_a.py::test_b")
    told = (await asyncio.to_thread(os.read, read, 1 << 16)).decode()
    watch.pytest_runtest_logfinish()
    os.close(read)
    assert "tests/test_a.py::test_b hangs" in told
    assert "test_a_test_that_takes_too_long" in told
