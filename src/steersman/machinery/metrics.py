"""Counters, gauges and histograms in Prometheus' text format 0.0.4.

Recording is a dictionary update, as it stands on the path of every request; all of it happens on one event loop, so
nothing is locked. Series are made when first recorded; each metric holds at most `MAX_SERIES` of them, whose labels are
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
"""Characters of the value of a label: as many as the name of an object may have."""
_LINES: Final = 1_000
"""In a piece of what is scraped: a millisecond."""

Labels = tuple[str, ...]


def hashed(text: str | bytes) -> str:
    """What stands for a text in labels and messages; nothing for none."""
    data = text.encode() if isinstance(text, str) else text
    return f"sha256:{sha256(data).hexdigest()}" if data else ""


class Metric(Protocol):
    """Something that can be scraped."""

    name: str

    def expose(self) -> Iterator[str]:
        """Its lines, HELP and TYPE first. Values may be recorded between them."""
        ...


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _bounded(values: Labels) -> Labels:
    """The values of labels, those that are too long cut off."""
    if all(len(value) <= LONGEST_VALUE for value in values):
        return values
    return tuple(value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 3]}..." for value in values)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _edge(bound: float) -> str:
    """Return the bound of a bucket as Go writes it: with an exponent from a million on, by which series are found."""
    shortest = next(text for digits in range(17) if float(text := f"{bound:.{digits}e}") == bound)
    return shortest if not -4 <= int(shortest.partition("e")[2]) < 6 else _number(bound)


class _Labelled:
    """What all metrics share: a name, a help text and the names of the labels."""

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
        """Adds `by`; one label value for each label name, in order."""
        series = self._values.get(labels)
        if series is None:
            series = self.series(labels)
        series[0] += by

    def series(self, labels: Labels = ()) -> list[float]:
        """Return the list whose only number is the value of a series: who counts often adds to it without a call.

        A series that is one too many is a list of its own, which nobody sees.
        """
        kept = _bounded(labels)
        series = self._values.get(kept)
        if series is None:
            series = [0]
            if len(self._values) < MAX_SERIES:
                self._values[kept] = series
        return series

    def forget(self, labels: Labels) -> None:
        """Takes a series away, if it is there."""
        self._values.pop(_bounded(labels), None)

    def value(self, labels: Labels = ()) -> float:
        """The present value of a series, 0 if there is none."""
        series = self._values.get(_bounded(labels))
        return 0 if series is None else series[0]

    def sum(self) -> float:
        """The present value of all series together."""
        return sum(value for (value,) in self._values.values())

    def expose(self) -> Iterator[str]:
        yield from self._head()
        for labels, (value,) in list(self._values.items()):
            yield f"{self.name}{self._series(labels)} {_number(value)}"


class Gauge(Counter):
    """A number that goes up and down."""

    kind = "gauge"

    def set(self, value: float, labels: Labels = ()) -> None:
        """Sets the series to `value`."""
        self.series(labels)[0] = value


class Computed(_Labelled):
    """A gauge or counter whose values are asked for when it is scraped."""

    def __init__(
        self, kind: str, name: str, help_text: str, labels: Labels, read: Callable[[], Iterable[tuple[Labels, float]]]
    ) -> None:
        super().__init__(name, help_text, labels)
        self.kind = kind
        self._read = read

    def expose(self) -> Iterator[str]:
        yield from self._head()
        for labels, value in list(self._read()):
            yield f"{self.name}{self._series(labels)} {_number(value)}"


class Histogram(_Labelled):
    """How values spread over buckets, with their sum and count."""

    kind = "histogram"

    def __init__(self, name: str, help_text: str, buckets: tuple[float, ...], labels: Labels = ()) -> None:
        super().__init__(name, help_text, labels)
        self._buckets = buckets
        self._values: dict[Labels, list[float]] = {}

    @cached_property
    def _edges(self) -> tuple[str, ...]:
        """The labels of buckets, written when they are first exposed."""
        return (*(f'le="{_edge(bound)}"' for bound in self._buckets), 'le="+Inf"')

    def observe(self, value: float, labels: Labels = ()) -> None:
        """Counts `value` in; one label value for each label name, in order."""
        series = self._values.get(labels)
        if series is None:
            series = self.series(labels)
        series[bisect_left(self._buckets, value)] += 1
        series[-1] += value

    def series(self, labels: Labels) -> list[float]:
        """Return the counts of a series: of each bucket, of what is beyond, and the sum of the values.

        A series that is one too many is a list of its own, which nobody sees.
        """
        kept = _bounded(labels)
        series = self._values.get(kept)
        if series is None:
            series = [0.0] * (len(self._buckets) + 2)
            if len(self._values) < MAX_SERIES:
                self._values[kept] = series
        return series

    def expose(self) -> Iterator[str]:
        yield from self._head()
        for labels, series in list(self._values.items()):
            yield from self._lines(labels, series)

    def _lines(self, labels: Labels, series: Sequence[float]) -> list[str]:
        """Those of one series, all of one moment."""
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
    """A histogram whose series are asked for when it is scraped: of each bucket, of what is beyond, and the sum."""

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
        yield from self._head()
        for labels, series in list(self._read()):
            yield from self._lines(labels, series)


class Registry:
    """The metrics of one server, scraped together."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def add(self, *metrics: Metric) -> None:
        """Registers metrics. Raises ValueError for a name that is taken."""
        for metric in metrics:
            if metric.name in self._metrics:
                raise ValueError(f"metric {metric.name} is registered already")
            self._metrics[metric.name] = metric

    def expose(self) -> Iterator[str]:
        """The text in pieces, one for each metric or more, so that a scrape of many series can yield in between."""
        for name in sorted(self._metrics):
            lines = self._metrics[name].expose()
            while piece := list(islice(lines, _LINES)):
                yield "\n".join(piece) + "\n"
