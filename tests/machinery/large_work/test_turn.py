"""Turns of the loop: work of many parts lets others have the loop once it has had it for a while."""

from __future__ import annotations

import asyncio

import pytest

from steersman.machinery.large_work import turn
from steersman.machinery.large_work.turn import Turn


async def test_others_have_the_loop_when_a_turn_has_lasted_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(turn, "monotonic", lambda: now)
    others: list[float] = []

    async def other() -> None:
        while True:
            others.append(now)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    others.clear()
    mine = Turn()
    for _ in range(20):
        now += 0.001
        await mine.give()
    task.cancel()
    assert len(others) == 3  # after every 5 ms, and a little
