"""Work counted per iteration of the event loop, instead of milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from steersman.work import yielding


async def steps_of_turns(count: Callable[[], int], is_over: Callable[[], bool]) -> list[int]:
    """Return the growth of `count` in each iteration of the event loop, until `is_over` returns True."""
    steps = []
    while not is_over():
        before = count()
        await asyncio.sleep(0)
        steps.append(count() - before)
    return steps


def yield_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make loops of `work.yielding` yield to the event loop at nearly every check of the clock."""
    monkeypatch.setattr(yielding, "BEGINNING", -1.0)
    monkeypatch.setattr(yielding, "SLICE", -1.0)
