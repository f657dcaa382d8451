"""Metrics in Prometheus' text format, and their bounds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from steersman.machinery import metrics
from steersman.machinery.metrics import Computed, Counter, Gauge, Histogram, Registry


def lines(metric: metrics.Metric) -> list[str]:
    return [line for line in metric.expose() if not line.startswith("#")]


def test_a_counter_counts_by_its_labels() -> None:
    counter = Counter("requests_total", "How many.", ("verb", "code"))
    counter.inc(("GET", "200"))
    counter.inc(("GET", "200"), 2)
    counter.inc(("PUT", "409"))
    assert list(counter.expose()) == [
        "# HELP requests_total How many.",
        "# TYPE requests_total counter",
        'requests_total{verb="GET",code="200"} 3',
        'requests_total{verb="PUT",code="409"} 1',
    ]
    assert (counter.value(("GET", "200")), counter.value(("GET", "500"))) == (3, 0)


def test_a_metric_without_labels_has_one_series() -> None:
    counter = Counter("started", "Starts.")
    assert lines(counter) == []
    counter.inc()
    assert lines(counter) == ["started 1"]


def test_a_series_can_be_counted_on_without_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, histogram = Counter("c", "C.", ("a",)), Histogram("h", "H.", (1.0,), ("a",))
    counter.inc(("x",))
    counter.series(("x",))[0] += 2
    histogram.observe(0.5, ("x",))
    series = histogram.series(("x",))
    series[1] += 1
    series[-1] += 3
    assert lines(counter) == ['c{a="x"} 3']
    assert lines(histogram)[1:] == ['h_bucket{a="x",le="+Inf"} 2', 'h_sum{a="x"} 3.5', 'h_count{a="x"} 2']
    monkeypatch.setattr(metrics, "MAX_SERIES", 1)
    counter.series(("y",))[0] += 1
    histogram.series(("y",))[0] += 1
    assert "y" not in "".join([*lines(counter), *lines(histogram)])


def test_a_gauge_goes_up_and_down() -> None:
    gauge = Gauge("open", "Open ones.", ("kind",))
    gauge.set(5, ("a",))
    gauge.inc(("a",), -2)
    gauge.set(0.5, ("b",))
    assert "# TYPE open gauge" in list(gauge.expose())
    assert lines(gauge) == ['open{kind="a"} 3', 'open{kind="b"} 0.5']


def test_a_computed_metric_is_asked_when_it_is_scraped() -> None:
    values = [1.0]
    metric = Computed("gauge", "size", "Size.", ("of",), lambda: [(("x",), values[0])])
    assert lines(metric) == ['size{of="x"} 1']
    values[0] = 2.5
    assert lines(metric) == ['size{of="x"} 2.5']


def test_a_histogram_adds_up_its_buckets() -> None:
    histogram = Histogram("took_seconds", "Time.", (0.1, 1.0), ("verb",))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value, ("GET",))
    assert lines(histogram) == [
        'took_seconds_bucket{verb="GET",le="0.1"} 2',
        'took_seconds_bucket{verb="GET",le="1"} 3',
        'took_seconds_bucket{verb="GET",le="+Inf"} 4',
        'took_seconds_sum{verb="GET"} 7.65',
        'took_seconds_count{verb="GET"} 4',
    ]


@pytest.mark.parametrize(
    ("value", "shown"), [('say "hi"', '"say \\"hi\\""'), ("a\\b", '"a\\\\b"'), ("a\nb", '"a\\nb"')]
)
def test_label_values_are_escaped(value: str, shown: str) -> None:
    counter = Counter("c", "C.", ("l",))
    counter.inc((value,))
    assert lines(counter) == [f"c{{l={shown}}} 1"]


@pytest.mark.parametrize("cls", [Counter, Gauge, Histogram])
def test_no_metric_has_more_series_than_its_bound(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_SERIES", 3)
    metric = cls("m", "M.", *([(1.0,)] if cls is Histogram else []), ("l",))
    record = metric.observe if cls is Histogram else lambda value, labels: metric.inc(labels, value)
    for number in range(10):
        record(1, (str(number),))
    record(1, ("0",))
    if cls is Gauge:
        metric.set(9, ("new",))
    shown = "\n".join(lines(metric))
    assert 'l="2"' in shown
    assert 'l="3"' not in shown
    assert "new" not in shown
    assert ('m{l="0"} 2' in shown) or ('m_count{l="0"} 2' in shown)


def test_a_registry_shows_all_its_metrics_in_order() -> None:
    registry = Registry()
    first, second = Counter("b", "B."), Counter("a", "A.")
    registry.add(first, second)
    first.inc()
    assert list(registry.expose()) == ["# HELP a A.\n# TYPE a counter\n", "# HELP b B.\n# TYPE b counter\nb 1\n"]
    with pytest.raises(ValueError, match="metric a is registered already"):
        registry.add(Counter("a", "Another."))


def test_many_series_are_exposed_in_pieces_while_values_are_recorded() -> None:
    registry, histogram, counter = Registry(), Histogram("h", "H.", (1, 2), ("who",)), Counter("c", "C.", ("who",))
    registry.add(histogram, counter)
    for number in range(3000):
        histogram.observe(1, (str(number),))
        counter.inc((str(number),))
    pieces = []
    for piece in registry.expose():
        pieces.append(piece)
        histogram.observe(2, (f"new {len(pieces)}",))
        counter.inc((f"new {len(pieces)}",))
    assert max(piece.count("\n") for piece in pieces) == 1000
    lines = "".join(pieces).splitlines()
    assert [line for line in lines if '"2999"' in line] == [
        'c{who="2999"} 1',
        'h_bucket{who="2999",le="1"} 1',
        'h_bucket{who="2999",le="2"} 1',
        'h_bucket{who="2999",le="+Inf"} 1',
        'h_sum{who="2999"} 1.0',
        'h_count{who="2999"} 1',
    ]


def test_a_label_of_any_length_is_cut_off() -> None:
    long = "n" * 100_000
    counter, gauge = Counter("asked", "All.", ("name",)), Gauge("open", "Open ones.", ("name",))
    histogram = Histogram("took", "Seconds.", (1.0,), ("name",))
    computed = Computed("gauge", "now", "Now.", ("name",), lambda: [((long,), 1)])
    for _ in range(2):
        counter.inc((long,))
        gauge.set(2, (long,))
        histogram.observe(0.5, (long,))
    shown = f'{{name="{"n" * 250}..."'
    assert lines(counter) == [f"asked{shown}}} 2"]
    assert lines(gauge) == [f"open{shown}}} 2"]
    assert lines(histogram)[-1] == f"took_count{shown}}} 2"
    assert lines(computed) == [f"now{shown}}} 1"]
    assert counter.value((long,)) == 2
    counter.remove((long,))
    assert lines(counter) == []


def test_bounds_of_buckets_are_written_as_go_writes_them() -> None:
    registry = Registry()
    sizes = Histogram("sizes", "Sizes.", (0.00001, 0.005, 1, 2.5, 100_000, 1e6, 1.05e6, 1_048_576, 1e9))
    registry.add(sizes)
    sizes.observe(1)
    edges = re.findall(r'le="([^"]+)"', "".join(registry.expose()))
    assert edges == ["1e-05", "0.005", "1", "2.5", "100000", "1e+06", "1.05e+06", "1.048576e+06", "1e+09", "+Inf"]
