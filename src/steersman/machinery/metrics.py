"""Counters, gauges and histograms in Prometheus' text format 0.0.4.

Recording is one dictionary update, because every request records. All of it happens on one event loop, so there are no
locks. A series is created when it is first recorded. A metric holds at most `MAX_SERIES` series, and label values are
cut off after `LONGEST_VALUE` characters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Final, Protocol

MAX_SERIES: Final = 20_000
LONGEST_VALUE: Final = 253
"""The most characters of a label value: as many as the name of an object may have."""
_LINES: Final = 1_000
"""Lines in one piece of the scraped text; a piece takes a millisecond."""
REQUEST_DURATIONS: Final = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60),
)
"""Upstream's buckets for the durations of requests to an API server and to its storage, in seconds."""

Labels = tuple[str, ...]


def sha256_label(text: str | bytes) -> str:
    """Return the SHA-256 of a text for labels and messages; "" for an empty text."""
    data = text.encode() if isinstance(text, str) else text
    return f"sha256:{sha256(data).hexdigest()}" if data else ""


class Metric(Protocol):
    """A metric that can be scraped."""

    name: str

    def expose(self) -> Iterator[str]:
        """Yield the lines of the metric, HELP and TYPE first.

        Values may be recorded between two lines.
        """
        ...


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _bounded(values: Labels) -> Labels:
    """Return label values, each cut off at LONGEST_VALUE characters."""
    if all(len(value) <= LONGEST_VALUE for value in values):
        return values
    return tuple(value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 3]}..." for value in values)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _edge(bound: float) -> str:
    """Return the bound of a bucket as Go writes it, with an exponent from a million on.

    Queries find series by this text.
    """
    shortest = next(text for digits in range(17) if float(text := f"{bound:.{digits}e}") == bound)
    return shortest if not -4 <= int(shortest.partition("e")[2]) < 6 else _number(bound)


class _Labelled:
    """Parts that all metrics share: a name, a help text and the names of the labels."""

    kind = ""

    def __init__(self, name: str, help_text: str, labels: Labels = ()) -> None:
        self.name = name
        self.help = help_text
        self.labels = labels

    def _head(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"

    def _series(self, values: Labels) -> str:
        pairs = [f'{key}="{_escape(value)}"' for key, value in zip(self.labels, _bounded(values), strict=True)]
        return f"{{{','.join(pairs)}}}" if pairs else ""


class Counter(_Labelled):
    """A number that only grows."""

    kind = "counter"

    def __init__(self, name: str, help_text: str, labels: Labels = ()) -> None:
        super().__init__(name, help_text, labels)
        self._values: dict[Labels, list[float]] = {}

    def inc(self, labels: Labels = (), by: float = 1) -> None:
        """Add `by` to a series. `labels` has one value for each label name, in order."""
        series = self._values.get(labels)
        if series is None:
            series = self.series(labels)
        series[0] += by

    def series(self, labels: Labels = ()) -> list[float]:
        """Return the list whose only number is the value of a series.

        Code that counts often adds to that number without a call. Beyond MAX_SERIES the list belongs to no series and
        is never scraped.
        """
        kept = _bounded(labels)
        series = self._values.get(kept)
        if series is None:
            series = [0]
            if len(self._values) < MAX_SERIES:
                self._values[kept] = series
        return series

    def remove(self, labels: Labels) -> None:
        """Remove a series if it exists."""
        self._values.pop(_bounded(labels), None)

    def value(self, labels: Labels = ()) -> float:
        """Return the present value of a series, 0 if it does not exist."""
        series = self._values.get(_bounded(labels))
        return 0 if series is None else series[0]

    def sum(self) -> float:
        """Return the sum of all series."""
        return sum(value for (value,) in self._values.values())

    def expose(self) -> Iterator[str]:
        """Yield the lines of the text format: help, type, and one line for each set of labels."""
        yield from self._head()
        for labels, (value,) in list(self._values.items()):
            yield f"{self.name}{self._series(labels)} {_number(value)}"


class Gauge(Counter):
    """A number that goes up and down."""

    kind = "gauge"

    def set(self, value: float, labels: Labels = ()) -> None:
        """Set a series to `value`."""
        self.series(labels)[0] = value


class Computed(_Labelled):
    """A gauge or counter whose values are read when it is scraped.

    `read` returns pairs of label values and value.
    """

    def __init__(
        self, kind: str, name: str, help_text: str, labels: Labels, read: Callable[[], Iterable[tuple[Labels, float]]]
    ) -> None:
        super().__init__(name, help_text, labels)
        self.kind = kind
        self._read = read

    def expose(self) -> Iterator[str]:
        """Yield the lines of the text format, with the values that the function returns now."""
        yield from self._head()
        for labels, value in list(self._read()):
            yield f"{self.name}{self._series(labels)} {_number(value)}"


class Histogram(_Labelled):
    """A distribution of values over buckets, with their sum and count."""

    kind = "histogram"

    def __init__(self, name: str, help_text: str, buckets: tuple[float, ...], labels: Labels = ()) -> None:
        super().__init__(name, help_text, labels)
        self._buckets = buckets
        self._values: dict[Labels, list[float]] = {}

    @cached_property
    def _edges(self) -> tuple[str, ...]:
        """Return the `le` labels of the buckets, built when they are first scraped."""
        return (*(f'le="{_edge(bound)}"' for bound in self._buckets), 'le="+Inf"')

    def observe(self, value: float, labels: Labels = ()) -> None:
        """Count `value` in its bucket. `labels` has one value for each label name, in order."""
        series = self._values.get(labels)
        if series is None:
            series = self.series(labels)
        series[bisect_left(self._buckets, value)] += 1
        series[-1] += value

    def series(self, labels: Labels) -> list[float]:
        """Return the numbers of a series: the count of each bucket, the count beyond the last, and the sum of the
        values.

        Beyond MAX_SERIES the list belongs to no series and is never scraped.
        """
        kept = _bounded(labels)
        series = self._values.get(kept)
        if series is None:
            series = [0.0] * (len(self._buckets) + 2)
            if len(self._values) < MAX_SERIES:
                self._values[kept] = series
        return series

    def expose(self) -> Iterator[str]:
        """Yield the lines of the text format: buckets, sum and count for each set of labels."""
        yield from self._head()
        for labels, series in list(self._values.items()):
            yield from self._lines(labels, series)

    def _lines(self, labels: Labels, series: Sequence[float]) -> list[str]:
        """Return the lines of one series, all of one moment."""
        where = self._series(labels)
        before = f"{self.name}_bucket{{" if not where else f"{self.name}_bucket{where[:-1]},"
        total = 0.0
        lines = []
        for edge, count in zip(self._edges, series, strict=False):
            total += count
            lines.append(f"{before}{edge}}} {_number(total)}")
        lines.append(f"{self.name}_sum{where} {series[-1]!r}")
        lines.append(f"{self.name}_count{where} {_number(total)}")
        return lines


class ComputedHistogram(Histogram):
    """A histogram whose series are read when it is scraped.

    `read` returns pairs of label values and numbers: the count of each bucket, the count beyond the last, and the sum.
    """

    def __init__(
        self,
        name: str,
        help_text: str,
        buckets: tuple[float, ...],
        labels: Labels,
        read: Callable[[], Iterable[tuple[Labels, Sequence[float]]]],
    ) -> None:
        super().__init__(name, help_text, buckets, labels)
        self._read = read

    def expose(self) -> Iterator[str]:
        """Yield the lines of the text format, with the series that the function returns now."""
        yield from self._head()
        for labels, series in list(self._read()):
            yield from self._lines(labels, series)


class Registry:
    """The metrics of one server, scraped together."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def add(self, *metrics: Metric) -> None:
        """Register metrics. Raises ValueError for a name that is registered already."""
        for metric in metrics:
            if metric.name in self._metrics:
                raise ValueError(f"metric {metric.name} is registered already")
            self._metrics[metric.name] = metric

    def expose(self) -> Iterator[str]:
        """Yield the text of all metrics in pieces of at most _LINES lines.

        A scrape of many series can yield to the event loop between two pieces.
        """
        for name in sorted(self._metrics):
            lines = self._metrics[name].expose()
            while piece := list(islice(lines, _LINES)):
                yield "\n".join(piece) + "\n"
