"""Events: the rules of both groups, and conversion between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.core.v1 import Event
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.conversion.events import from_core, to_core
from steersman.registry.core.events import EVENTS

NEW: dict[str, Any] = {
    "metadata": {"name": "e.1"},
    "eventTime": "2026-01-01T00:00:00.000001Z",
    "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "a"},
    "reportingComponent": "example.com/c",
    "reportingInstance": "i",
    "action": "Act",
    "reason": "Why",
    "type": "Normal",
}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (
            {"metadata": {"name": "a.1"}, "involvedObject": {"namespace": "other"}},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
        (
            {"metadata": {"name": "a.1", "labels": {"a b": "c"}}, "involvedObject": {"namespace": "other"}},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
        (
            {"metadata": {"name": "a.1"}, "involvedObject": {"kind": "Node"}},
            ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
        ),
        (
            {**NEW, "action": "", "reason": "x" * 129},
            ["action: Required value", 'reason: Invalid value: "": can have at most 128 characters'],
        ),
    ],
)
async def test_invalid_event_is_refused(cluster: Callable[..., Any], body: dict[str, Any], faults: list[str]) -> None:
    c = await cluster(EVENTS)
    assert await c.faults(c.create("events", body)) == faults


async def test_new_group_asks_for_more(cluster: Callable[..., Any]) -> None:
    c = await cluster(EVENTS)
    old_style = {
        "metadata": {"name": "a.1"},
        "involvedObject": {"namespace": "ns"},
        "count": 2,
        "source": {"component": "c"},
        "series": {"count": 1},
    }
    await c.create("events", old_style)
    ctx = c.context(c.stores["", "events"], "ns", "", group="events.k8s.io")
    assert [str(fault) for fault in EVENTS.strategy.validate(ctx, *_both(old_style))] == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
        "eventTime: Required value",
        'type: Invalid value: "": has invalid value: ',
        'count: Invalid value: "": needs to be unset',
        'source: Invalid value: "": needs to be unset',
    ]


async def test_new_group_changes_only_the_series(cluster: Callable[..., Any]) -> None:
    c = await cluster(EVENTS)
    store = c.stores["", "events"]
    await c.create("events", NEW)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.000000Z"}
    assert (await c.update("events", {**NEW, "series": series}))["series"] == series
    changed = {**NEW, "reason": "Other", "involvedObject": {**NEW["involvedObject"], "name": "b"}}
    faults = list(
        EVENTS.strategy.validate_update(c.context(store, "ns", "e.1", group="events.k8s.io"), *_both(changed, NEW))
    )
    assert [str(fault) for fault in faults] == [
        'involvedObject: Invalid value: {"Kind":"Pod","Namespace":"ns","Name":"b","UID":"","APIVersion":"",'
        '"ResourceVersion":"","FieldPath":""}: field is immutable',
        'reason: Invalid value: "Other": field is immutable',
        'reason: Invalid value: "Other": field is immutable',
    ]


def _both(*bodies: dict[str, Any]) -> list[Event]:
    events = [from_plain(Event, body) for body in bodies]
    for event in events:
        event.metadata.namespace = "ns"
    return events


def test_conversion_loses_nothing() -> None:
    event = from_plain(
        Event,
        {
            **NEW,
            "message": "m",
            "count": 3,
            "source": {"component": "c", "host": "h"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:01Z",
            "related": {"kind": "Node", "name": "n"},
            "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.000000Z"},
        },
    )
    there = from_core(event)
    assert (there.note, there.deprecated_count, there.regarding.name) == ("m", 3, "a")
    assert to_plain(to_core(there)) == to_plain(event)


def test_table_tells_when_and_by_whom() -> None:
    event = from_plain(Event, {**NEW, "involvedObject": {"kind": "Pod", "name": "a"}, "message": " text \n"})
    cells = {column.name: column.cell(event) for column in EVENTS.columns if column.cell is not None}
    assert (cells["Object"], cells["Source"], cells["Message"], cells["Count"]) == (
        "pod/a",
        "example.com/c, i",
        "text",
        1,
    )
    assert cells["Last Seen"] == cells["First Seen"] != "<unknown>"
