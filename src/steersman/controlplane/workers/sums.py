"""Aggregation of several processes' metrics into those of one server, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from steersman.work.yielding import time_sliced

_LINES: Final = 1_000
"""Lines of a piece."""
_LARGEST: Final = frozenset(
    {
        "apiserver_resource_objects",
        "apiserver_storage_objects",
        "apiserver_storage_size_bytes",
        "apiserver_requested_deprecated_apis",
        "kubernetes_build_info",
        "kubernetes_feature_enabled",
        "process_virtual_memory_max_bytes",
    }
)
"""Names of gauges that are equal in all processes: the largest value counts."""
_LARGEST_ENDS: Final = ("_info", "_timestamp_seconds")
"""Suffixes of further gauges that are equal in all processes."""
_SMALLEST: Final = "process_start_time_seconds"


class _Family:
    """A metric: its help line, and its series in order."""

    __slots__ = ("combine", "head", "kind", "series")

    def __init__(self, name: str, head: str) -> None:
        self.head = head
        self.kind = ""
        self.series: dict[str, float] = {}
        self.combine: Callable[[float, float], float] = _add
        if name == _SMALLEST:
            self.combine = _lesser
        elif name in _LARGEST or name.endswith(_LARGEST_ENDS):
            self.combine = _greater


def _add(one: float, other: float) -> float:
    return one + other


def _lesser(one: float, other: float) -> float:
    return min(one, other)


def _greater(one: float, other: float) -> float:
    return max(one, other)


class Sums:
    """Sum of metrics in text format. Counters, histograms and most gauges are added; server-wide gauges are not."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    async def add(self, text: str, *, only_counts: bool = False) -> None:
        """Add the metrics of one process; `only_counts` leaves gauges out."""
        family: _Family | None = None
        async for line in time_sliced(text.split("\n")):
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
                family = self._families.get(name)
                if family is None:
                    family = self._families[name] = _Family(name, line)
            elif family is None or not line:
                continue
            elif line.startswith("# TYPE "):
                family.kind = line.rpartition(" ")[2]
            elif not only_counts or family.kind in ("counter", "histogram"):
                series, _, value = line.rpartition(" ")
                before = family.series.get(series)
                number = float(value)
                family.series[series] = number if before is None else family.combine(before, number)

    def lines(self) -> Iterator[str]:
        """Yield the whole text in pieces of some lines."""
        for name, family in self._families.items():
            lines = [family.head, f"# TYPE {name} {family.kind}"]
            for series, value in family.series.items():
                lines.append(f"{series} {_number(value)}")
                if len(lines) >= _LINES:
                    yield "\n".join(lines) + "\n"
                    lines = []
            if lines:
                yield "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


async def summed(texts: Sequence[str], counted: str = "") -> list[bytes]:
    """Return the sum of processes' metrics in pieces; of ended ones (`counted`) only counters and histograms."""
    sums = Sums()
    for text in texts:
        await sums.add(text)
    await sums.add(counted, only_counts=True)
    pieces = []
    async for piece in time_sliced(sums.lines()):
        pieces.append(piece.encode())
    return pieces
