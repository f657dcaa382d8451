"""Truncation of events that are too large."""

from __future__ import annotations

import json

import pytest

from steersman.audit.backends.truncation import Sizes, Truncating
from tests.audit.recorded import Kept, counted, record

LARGE = {"x": "y" * 1000}


async def test_what_fits_stays_as_it_is() -> None:
    kept = Kept()
    small = record(1, "Request", requestObject={"a": "<"})
    waiting = Truncating(kept, Sizes(500, 1000), counted()[0]).process([small])
    assert waiting is not None
    assert await waiting
    assert kept.batches == [[small]]


async def test_objects_are_left_out_of_what_does_not_fit() -> None:
    kept = Kept()
    large = record(
        1,
        "RequestResponse",
        requestURI="/a?b<c",
        requestObject=LARGE,
        responseObject=LARGE,
        annotations={"z.io/a": "b"},
    )
    waiting = Truncating(kept, Sizes(500, 1000), counted()[0]).process([large])
    assert waiting is not None
    assert await waiting
    [[cut]] = kept.batches
    event = json.loads(b"{" + cut)
    assert "requestObject" not in event
    assert "responseObject" not in event
    assert event["annotations"] == {"audit.k8s.io/truncated": "true", "z.io/a": "b"}
    assert b"/a?b\\u003cc" in cut


async def test_what_is_too_large_without_objects_is_lost_and_counted() -> None:
    kept, (errors, metrics) = Kept(), counted()
    times = {"requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z", "stageTimestamp": "2026-01-01T00:00:00.000000Z"}
    long = record(1, "Metadata", verb="a" * 1000, **times)
    assert Truncating(kept, Sizes(500, 1000), errors).process([long]) is None
    assert kept.batches == []
    assert metrics.errors.value(("truncate",)) == 1


async def test_a_batch_is_split_where_it_would_be_too_large() -> None:
    kept = Kept()
    some = [record(number, requestURI="a" * 200) for number in range(5)]
    waiting = Truncating(kept, Sizes(400, 700), counted()[0]).process(some)
    assert waiting is not None
    assert await waiting
    assert kept.sizes == [2, 2, 1]


@pytest.mark.parametrize("level", ["Metadata", "Request"])
@pytest.mark.parametrize("member", ["requestURI", "auditID"])
async def test_nobody_keeps_a_request_out_of_the_log_by_a_long_text(level: str, member: str) -> None:
    kept, (errors, metrics) = Kept(), counted()
    long = record(1, level, **{member: "/a?" + "b" * 100_000}, user={"username": "eve"}, verb="delete")
    waiting = Truncating(kept, Sizes(3000, 10_000), errors).process([long])
    assert waiting is not None
    assert await waiting
    event = json.loads(b"{" + kept.batches[0][0])
    assert event[member] == "/a?" + "b" * 1021 + "...TRUNCATED"
    assert (event["user"]["username"], event["verb"]) == ("eve", "delete")
    assert event["annotations"] == {"audit.k8s.io/truncated": "true"}
    assert metrics.errors.value(("truncate",)) == 0
