"""W3C trace context as OpenTelemetry's propagators for Go read it."""

from __future__ import annotations

import pytest

from steersman.tracing.propagation import extract, traceparent

TRACE, SPAN = f"{0xABC:032x}", f"{0xDEF:016x}"


def test_trace_context_and_baggage_are_read() -> None:
    found = extract({"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b", "baggage": "k=v"})
    assert found == (0xABC, 0xDEF, 1, "a=b", "k=v")
    assert found.is_sampled
    assert traceparent(found.trace_id, found.span_id, sampled=True) == f"00-{TRACE}-{SPAN}-01"


def test_a_future_version_is_read_as_this_one() -> None:
    found = extract({"traceparent": f"cc-{TRACE}-{SPAN}-00-what-follows"})
    assert found is not None
    assert not found.is_sampled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-09",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        "0" * 1_000_000,
    ],
)
def test_a_malformed_traceparent_is_ignored(text: str) -> None:
    assert extract({"traceparent": text, "tracestate": "a=b"}) is None


def test_baggage_alone_is_passed_on_but_not_without_bound() -> None:
    assert extract({"baggage": "k=v"}) == (0, 0, 0, "", "k=v")
    assert extract({"baggage": "k" * 10_000}) is None
