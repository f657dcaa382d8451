"""Tests of request rates from the API server's metrics."""

from __future__ import annotations

import json
from contextlib import aclosing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.client.client import Client
from steersman.client.resources import NODES
from steersman.client.transport import Unreachable
from steersman.inspector.rates import BadMetrics, Counters, RatesView, quantile, rates_between, read_counters
from tests.inspector.front_client import ScriptedAnswer, ScriptedServer

METRICS = b"""# HELP apiserver_request_total x
apiserver_request_total{code="200",verb="GET"} 7
apiserver_request_total{code="404",verb="GET"} 3 1700000000000
apiserver_request_total{code="201",subverb="x",verb="POST"} 1e1
apiserver_request_duration_seconds_bucket{verb="GET",role="x",le="0.1"} 5
apiserver_request_duration_seconds_bucket{verb="GET",role="x",le="+Inf"} 10
apiserver_request_duration_seconds_bucket{verb="WATCH",le="+Inf"} 99
apiserver_watch_events_total{kind="}"} 4
apiserver_current_inflight_requests{request_kind="readOnly"} 2
"""


def test_counters_are_sums_over_labels() -> None:
    assert read_counters(METRICS, 5.0) == Counters(
        5.0, {"GET": 10.0, "POST": 10.0}, {0.1: 5.0, float("inf"): 10.0}, 4.0, 2.0
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>404</html>",
        b"other_total 1\n",
        b"apiserver_request_total{verb=",
        b'apiserver_request_total{verb="GET"}\n',
        b'apiserver_request_total{verb="GET"} x\n',
        b'apiserver_request_total{verb="GET"} NaN\n',
        b'apiserver_request_total{verb="GET"} +Inf\n',
        b'apiserver_request_total{verb="GET"} 1e308\n' * 2,
        b'apiserver_request_total{verb="GET"} 1\xff\n',
        b'apiserver_request_duration_seconds_bucket{verb="GET",le=""} 1\n',
        b'apiserver_request_duration_seconds_bucket{verb="GET"} 1\n',
        b'apiserver_request_duration_seconds_bucket{verb="GET",le="x"} 1\n',
    ],
)
async def test_other_texts_are_an_error_line(text: bytes) -> None:
    with pytest.raises(BadMetrics):
        read_counters(text, 0.0)
    view = RatesView(Client(ScriptedServer(ScriptedAnswer(pieces=[text])), "tests"))
    async with aclosing(view.read()) as batches:
        (line,) = await anext(batches)
    assert json.loads(line)["error"].startswith("/metrics has")


@given(st.binary(max_size=80), st.sampled_from([b"", b"apiserver_request_total{", b"apiserver_watch_events_total{a="]))
@settings(max_examples=50)
def test_any_text_is_read_or_refused(text: bytes, before: bytes) -> None:
    with suppress(BadMetrics):
        assert read_counters(METRICS + before + text, 0.0).requests["GET"] >= 10.0


async def test_a_server_that_does_not_answer_is_an_error_line() -> None:
    view = RatesView(Client(ScriptedServer(Unreachable("refused")), "tests"))
    async with aclosing(view.read()) as batches:
        (line,) = await anext(batches)
    assert json.loads(line)["error"] == "refused"


def test_rates_are_per_second_and_a_restarted_server_counts_from_zero() -> None:
    before = Counters(0.0, {"GET": 100.0, "PUT": 4.0}, {0.1: 90.0, float("inf"): 100.0}, 50.0, 1.0)
    after = Counters(2.0, {"GET": 10.0, "PUT": 4.0, "POST": 6.0}, {0.1: 10.0, float("inf"): 10.0}, 5.0, 3.0)
    found = rates_between(before, after)
    assert found.requests == {"GET": 5.0, "POST": 3.0}
    assert (found.events, found.inflight, found.at) == (2.5, 3.0, 2.0)
    assert found.p50 == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("buckets", "wanted", "found"),
    [  # as Prometheus' histogram_quantile
        ([], 0.5, None),
        ([(0.1, 0.0), (float("inf"), 0.0)], 0.5, None),
        ([(0.1, 10.0), (1.0, 10.0), (float("inf"), 10.0)], 0.5, 0.05),
        ([(0.1, 0.0), (1.0, 10.0), (float("inf"), 10.0)], 0.5, 0.55),
        ([(0.1, 5.0), (1.0, 10.0), (float("inf"), 10.0)], 0.99, 0.982),
        ([(0.1, 5.0), (1.0, 9.0), (float("inf"), 10.0)], 0.99, 1.0),
        ([(float("inf"), 10.0)], 0.99, 0.0),
        ([(0.1, 5.0), (1.0, 5.0), (2.0, 10.0), (float("inf"), 10.0)], 0.5, 0.1),
    ],
)
def test_quantiles_are_interpolated(buckets: list[tuple[float, float]], wanted: float, found: float | None) -> None:
    assert quantile(buckets, wanted) == (None if found is None else pytest.approx(found))


async def test_the_metrics_of_a_server_are_read(client: Client) -> None:
    for _ in range(2):  # requests are counted when they are answered
        await client.list(NODES)
    counters = read_counters(await client.request("GET", "/metrics"), 0.0)
    assert counters.requests
    assert float("inf") in counters.buckets
