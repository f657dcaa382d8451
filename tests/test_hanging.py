"""Tests of the output about hanging tasks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from tests import ROOT
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


def test_a_process_whose_test_never_ends_is_ended_with_the_stacks_of_its_threads() -> None:
    program = """
from threading import Event
from tests.hanging import LastResort
watch = LastResort(0.1, 2, exits=True)
watch.pytest_runtest_logstart()
def a_test_that_waits_for_ever():
    Event().wait()
a_test_that_waits_for_ever()
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "a_test_that_waits_for_ever" in ended.stderr


def test_a_timer_is_started_again_only_after_a_tenth_of_its_time() -> None:
    program = """
from tests import hanging
watch = hanging.LastResort(100.0, 2, exits=True)
watch.pytest_runtest_logstart()
first = watch.began
for later in (9, 11):
    hanging.monotonic = lambda: first + later
    watch.pytest_runtest_logstart()
    print(watch.began - first)
watch.pytest_unconfigure()
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split()) == (0, ["0.0", "11.0"])
