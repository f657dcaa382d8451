"""Times for which a watch is held back, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.stress.point import Kind, PlannedFault
from steersman.testing import Environment
from tests.stress.tapping import OPERATOR, PATH, Manager, Received, config_map, point, tapped

AT = PlannedFault(Kind.STALE, point("watch", "b", "ADDED"))


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    async with Environment(users=(OPERATOR,), clock=True) as running:
        yield running


async def held_back(environment: Environment, hold: float) -> Received:
    """Return the events of a watch that is held back at its second one; `hold` is long beside the time of a test."""
    manager = Manager(environment)
    tap = tapped(environment, AT, hold=hold)
    received = Received(await manager.watch(str(environment.plane.storage.revision)))  # type: ignore[union-attr]
    for name in ("a", "b", "c"):
        await manager.code("POST", PATH, config_map(name))
    await environment.wait_until(lambda: tap.hits)
    return received


async def test_a_stale_watch_goes_on_once_the_operator_is_idle(environment: Environment) -> None:
    received = await held_back(environment, hold=400)
    await environment.clock.advance(seconds=300)
    assert received.events == [("ADDED", "a")]
    await environment.clock.advance(seconds=110)
    await environment.wait_until(lambda: len(received.events) == 3)
    await received.end()


async def test_a_watch_stays_behind_a_busy_operator_for_the_whole_hold(environment: Environment) -> None:
    received = await held_back(environment, hold=400)
    await environment.clock.advance(seconds=300)
    await Manager(environment).code("GET", f"{PATH}/a")
    assert received.events == [("ADDED", "a")]
    await environment.clock.advance(seconds=110)
    await environment.wait_until(lambda: len(received.events) == 3)
    await received.end()
