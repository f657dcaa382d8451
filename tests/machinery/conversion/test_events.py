"""Events between events.k8s.io/v1 and the core group."""

from __future__ import annotations

from steersman.api.events import v1 as events
from steersman.machinery.codec.serializer import decode_json, to_plain
from steersman.machinery.conversion.events import from_core, to_core


def test_events_keep_everything_on_the_way_to_core_and_back() -> None:
    event = decode_json(
        events.Event,
        b'{"metadata":{"name":"e"},"eventTime":"2024-01-01T00:00:00.000001Z","series":{"count":2,'
        b'"lastObservedTime":"2024-01-01T00:00:01.000000Z"},"reportingController":"c","reportingInstance":"i",'
        b'"action":"a","reason":"r","regarding":{"kind":"Pod"},"related":{"kind":"Node"},"note":"n","type":"Normal",'
        b'"deprecatedSource":{"host":"h"},"deprecatedFirstTimestamp":"2024-01-01T00:00:00Z","deprecatedCount":3}',
    )
    stored = to_core(event)
    assert (stored.message, stored.involved_object.kind, stored.count, stored.reporting_component) == (
        "n",
        "Pod",
        3,
        "c",
    )
    again = from_core(stored)
    assert to_plain(again) == to_plain(event)
