"""Tasks that go on without anybody waiting for them, and errors of such tasks."""

from __future__ import annotations

import ast
import asyncio
import gc
import logging
from pathlib import Path
from typing import Any

import pytest

import steersman
from steersman.work.shielding import shielded

assert steersman.__file__ is not None
SOURCES = Path(steersman.__file__).parent
LOOKED_AT = {
    "work/shielding.py": "`look`, for everybody else",
    "store/uninterrupted.py": "`_tell`, which logs refused and failed writes",
}
"""Files that may call asyncio.shield, and the function that handles an error when nobody waits any more."""


async def failing(go: asyncio.Event) -> int:
    await go.wait()
    raise ValueError("no luck")


async def test_an_error_without_a_waiter_is_logged_once_and_not_by_asyncio(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unretrieved: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unretrieved.append(context))
    caplog.set_level(logging.INFO)
    go = asyncio.Event()
    task = asyncio.ensure_future(failing(go))
    waiter = asyncio.ensure_future(shielded_wait(task))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert not task.cancelled()
    go.set()
    await asyncio.wait({task})
    await asyncio.sleep(0)
    del task, waiter
    gc.collect()
    assert unretrieved == []
    assert caplog.messages == ["a shared task failed after its waiter was cancelled"]


async def shielded_wait(task: asyncio.Future[int]) -> int:
    return await shielded(task)


async def test_a_waiter_gets_the_error_and_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    go = asyncio.Event()
    go.set()
    task = asyncio.ensure_future(failing(go))
    with pytest.raises(ValueError, match="no luck"):
        await shielded(task)
    with pytest.raises(ValueError, match="no luck"):
        await shielded(task)
    assert caplog.messages == []


def test_errors_of_shielded_tasks_are_handled() -> None:
    found = set()
    for file in SOURCES.rglob("*.py"):
        text = file.read_text()
        if "shield" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            is_attribute = isinstance(node, ast.Attribute) and node.attr == "shield"
            is_import = isinstance(node, ast.ImportFrom) and any(each.name == "shield" for each in node.names)
            if is_attribute or is_import:
                found.add(str(file.relative_to(SOURCES)))
    assert found == set(LOOKED_AT)
