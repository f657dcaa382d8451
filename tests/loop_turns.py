"""What goes on in each turn of the loop: turns are counted, not milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from steersman.work import yielding


async def steps_of_turns(count: Callable[[], int], is_over: Callable[[], bool]) -> list[int]:
    """By how much `count` grows in each turn of the loop, until it `is_over`."""
    steps = []
    while not is_over():
        before = count()
        await asyncio.sleep(0)
        steps.append(count() - before)
    return steps


def yield_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have loops of `work.yielding` give the event loop to others at nearly every look at the clock."""
    monkeypatch.setattr(yielding, "BEGINNING", -1.0)
    monkeypatch.setattr(yielding, "SLICE", -1.0)
