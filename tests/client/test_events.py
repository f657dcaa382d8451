"""Tests of the event recorder: repeated events are counted, similar ones combined, floods dropped."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.api.core.v1 import Event, ObjectReference
from steersman.client.client import Client
from steersman.client.events import Broadcaster, Recorder
from steersman.client.resources import EVENTS
from tests.controllers.waiting import eventually

ABOUT = ObjectReference(kind="Pod", namespace="default", name="p", uid="u", api_version="v1")


@pytest_asyncio.fixture
async def recorder(client: Client) -> AsyncIterator[Recorder]:
    broadcaster = Broadcaster(client)
    broadcaster.start()
    yield broadcaster.recorder("tester")
    await broadcaster.stop()


async def listed_events(client: Client) -> list[Event]:
    return (await client.list(EVENTS, "default")).items


async def test_what_repeats_is_counted(client: Client, recorder: Recorder) -> None:
    for _ in range(3):
        recorder.event(ABOUT, "Normal", "Again", "the same")

    async def counted() -> bool:
        return [(each.message, each.count) for each in await listed_events(client)] == [("the same", 3)]

    await eventually(counted)
    (event,) = await listed_events(client)
    assert (event.source.component, event.reporting_component, event.type) == ("tester", "tester", "Normal")


async def test_from_the_tenth_on_what_is_alike_is_combined(client: Client, recorder: Recorder) -> None:
    for number in range(12):
        recorder.event(ABOUT, "Normal", "Alike", f"number {number}")

    async def combined() -> Event | None:
        found = [
            each for each in await listed_events(client) if each.message.startswith("(combined from similar events): ")
        ]
        return found[0] if found and found[0].count == 3 else None

    event = await eventually(combined)
    assert event is not None
    assert event.message == "(combined from similar events): number 11"
    assert (event.source.component, event.reporting_component) == ("tester", "")
    assert len(await listed_events(client)) == 10


async def test_a_flood_about_one_object_is_left_out(client: Client, recorder: Recorder) -> None:
    for number in range(40):
        recorder.event(ABOUT, "Normal", f"Reason{number}", "x")
    recorder.event(ObjectReference(kind="Pod", namespace="default", name="q", uid="v"), "Normal", "Last", "x")

    async def last() -> bool:
        return any(each.reason == "Last" for each in await listed_events(client))

    await eventually(last)
    assert len(await listed_events(client)) == 26
