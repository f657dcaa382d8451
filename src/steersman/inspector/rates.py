"""Request rates and latencies of the API server, from its metrics, while a page reads them."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from math import isfinite
from typing import Final

import msgspec
from msgspec import Struct

from steersman.client.client import Client
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.work.offloading import offload_if

INTERVAL: Final = 5.0
"""Seconds between two readings of the metrics."""
_FIRST: Final = 1.0
"""Seconds between the first two readings, so that a page has figures soon."""
_PREFIX: Final = b"apiserver_"
_REQUESTS: Final = b"apiserver_request_total{"
_BUCKETS: Final = b"apiserver_request_duration_seconds_bucket{"
_EVENTS: Final = b"apiserver_watch_events_total{"
_INFLIGHT: Final = b"apiserver_current_inflight_requests{"
_LONG: Final = ("WATCH", "CONNECT")
"""Verbs that last as long as their clients want."""
_SHOWN: Final = 64
"""Bytes of a malformed number that an error quotes."""
_ENCODER: Final = msgspec.json.Encoder()


class BadMetrics(Exception):
    """The server's metrics are not in Prometheus' text format."""


class Counters(Struct):
    """Counters of one reading: requests by verb, requests by upper bound of their seconds, watch events, inflight."""

    at: float
    requests: dict[str, float]
    buckets: dict[float, float]
    events: float
    inflight: float


class Rates(Struct, rename="camel"):
    """Rates between two readings, per second; latencies in seconds, None without a request.

    `at` is the time in seconds since 1970. `error` tells why there are no figures.
    """

    at: float
    requests: dict[str, float] = {}
    p50: float | None = None
    p99: float | None = None
    events: float = 0.0
    inflight: float = 0.0
    error: str = ""


class RatesView:
    """Rates of one server. Each reader reads the metrics itself; there are few."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self) -> AsyncGenerator[list[bytes], None]:
        """Yield a line of `Rates` every INTERVAL seconds."""
        before: Counters | None = None
        pause = _FIRST
        while True:
            try:
                text = await self._client.request("GET", "/metrics")
                after = await offload_if(True, read_counters, text, time.time())
            except (StatusError, Unreachable, BadMetrics) as error:
                yield [_ENCODER.encode(Rates(time.time(), error=str(error)))]
                before = None
            else:
                if before is not None:
                    yield [_ENCODER.encode(rates_between(before, after))]
                before = after
            await asyncio.sleep(pause)
            pause = INTERVAL


def read_counters(text: bytes, at: float) -> Counters:
    """Return the counters in a scrape of kube-apiserver's metrics. Raises BadMetrics."""
    requests: dict[str, float] = defaultdict(float)
    buckets: dict[float, float] = defaultdict(float)
    events = inflight = 0.0
    if not text.startswith(_PREFIX) and b"\n" + _PREFIX not in text:
        raise BadMetrics("/metrics has no metrics of an API server")
    for line in text.split(b"\n"):
        if line.startswith(_REQUESTS):
            requests[_label(line, b"verb")] += _value(line)
        elif line.startswith(_BUCKETS):
            if _label(line, b"verb") not in _LONG:
                buckets[_number(_label(line, b"le").encode())] += _value(line)
        elif line.startswith(_EVENTS):
            events += _value(line)
        elif line.startswith(_INFLIGHT):
            inflight += _value(line)
    if not all(map(isfinite, (events, inflight, *requests.values(), *buckets.values()))):
        raise BadMetrics("/metrics has counters whose sum is infinite")
    return Counters(at, dict(requests), dict(buckets), events, inflight)


def rates_between(before: Counters, after: Counters) -> Rates:
    """Return the rates between two readings of one server; a server that was started anew counts from zero."""
    seconds = max(after.at - before.at, 1e-3)
    requests = {verb: _grown(count, before.requests.get(verb, 0.0)) / seconds for verb, count in after.requests.items()}
    grown = sorted((bound, _grown(count, before.buckets.get(bound, 0.0))) for bound, count in after.buckets.items())
    return Rates(
        after.at,
        {verb: rate for verb, rate in requests.items() if rate},
        quantile(grown, 0.5),
        quantile(grown, 0.99),
        _grown(after.events, before.events) / seconds,
        after.inflight,
    )


def quantile(buckets: Iterable[tuple[float, float]], wanted: float) -> float | None:
    """Return a quantile from cumulative buckets in order, interpolated as Prometheus does; None without a request."""
    buckets = list(buckets)
    total = buckets[-1][1] if buckets else 0.0
    if total <= 0:
        return None
    rank, lower, below = wanted * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / max(count - below, 1e-9)
        lower, below = bound, count
    return lower


def _grown(after: float, before: float) -> float:
    return after - before if after >= before else after


def _label(line: bytes, name: bytes) -> str:
    """Return the value of a label, "" if it is missing."""
    start = max(line.find(b'%b%b="' % (before, name)) for before in (b"{", b","))
    if start < 0:
        return ""
    start += len(name) + 3
    return line[start : line.find(b'"', start)].decode(errors="replace")


def _value(line: bytes) -> float:
    """Return the value of a sample; a time may follow it. Raises BadMetrics unless it is a finite number."""
    value = _number(line.rpartition(b"}")[2].strip(b" ").partition(b" ")[0])
    if not isfinite(value):
        raise BadMetrics(f"/metrics has the value {value}")
    return value


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        shown = text[:_SHOWN].decode(errors="replace")
        raise BadMetrics(f"/metrics has {shown!r} in place of a number") from None
