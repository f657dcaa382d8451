"""Tests of the recorder for events.k8s.io: repeated events become a series."""

from __future__ import annotations

from steersman.api.core.v1 import ObjectReference
from steersman.api.events.v1 import Event
from steersman.client.client import Client
from steersman.client.event_series import SeriesRecorder
from steersman.client.resources import NEW_EVENTS
from steersman.testing.clock import Clock
from tests.controllers.waiting import eventually

ABOUT = ObjectReference(kind="Pod", namespace="default", name="p", uid="u", api_version="v1")


async def listed_events(client: Client) -> list[Event]:
    return (await client.list(NEW_EVENTS, "default")).items


async def test_the_second_of_the_same_makes_a_series_and_another_reason_does_not(client: Client) -> None:
    recorder = SeriesRecorder(client, "tester")
    recorder.start()
    recorder.event(ABOUT, "Warning", "Failed", "Scheduling", "x" * 2000)
    recorder.event(ABOUT, "Normal", "Other", "Scheduling", "y")

    async def written() -> bool:
        return recorder.idle

    await eventually(written)
    recorder.event(ABOUT, "Warning", "Failed", "Scheduling", "z")
    await eventually(written)
    found = {each.reason: each for each in await listed_events(client)}
    assert {reason: each.series and each.series.count for reason, each in found.items()} == {"Failed": 2, "Other": None}
    assert (len(found["Failed"].note), found["Failed"].note[-4:]) == (1024, " ...")
    assert found["Failed"].reporting_controller == "tester"
    await recorder.stop()


async def count_of(client: Client) -> int | None:
    [found] = await listed_events(client)
    return None if found.series is None else found.series.count


async def repeat(recorder: SeriesRecorder, clock: Clock, times: int, seconds: float) -> None:
    """Record the same event `times` times, `seconds` apart."""
    for _ in range(times):
        recorder.event(ABOUT, "Warning", "Failed", "Scheduling", "x")
        await clock.advance(seconds=seconds)


async def test_later_repetitions_are_written_at_the_end_of_the_series(client: Client) -> None:
    clock, recorder = Clock(), SeriesRecorder(client, "tester")
    recorder.start()
    await repeat(recorder, clock, 5, 60)
    assert await count_of(client) == 2
    await clock.advance(seconds=800)
    assert await count_of(client) == 5
    await repeat(recorder, clock, 1, 60)
    assert sorted(each.series.count if each.series else 1 for each in await listed_events(client)) == [1, 5]
    await recorder.stop()


async def test_a_series_that_goes_on_is_refreshed(client: Client) -> None:
    clock, recorder = Clock(), SeriesRecorder(client, "tester")
    recorder.start()
    await repeat(recorder, clock, 7, 270)
    recorder.event(ABOUT, "Warning", "Failed", "Scheduling", "x")
    assert await count_of(client) == 7
    await recorder.stop()
