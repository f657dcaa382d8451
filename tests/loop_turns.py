"""What goes on in each turn of the loop: turns are counted, not milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def steps_of_turns(count: Callable[[], int], is_over: Callable[[], bool]) -> list[int]:
    """By how much `count` grows in each turn of the loop, until it `is_over`."""
    steps = []
    while not is_over():
        before = count()
        await asyncio.sleep(0)
        steps.append(count() - before)
    return steps
