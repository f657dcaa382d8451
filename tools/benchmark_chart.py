#!/usr/bin/env python3
"""Draw rows of the comparison table in docs/performance.md as an SVG bar chart.

    python -m tools.benchmark_chart        # writes docs/images/benchmark.svg

Each row has a bar for each server. The longer of both has the full length, as rows have different units.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs/performance.md"
OUTPUT: Final = ROOT / "docs/images/benchmark.svg"
SECTION: Final = "Against kube-apiserver"
CHOSEN: Final = {
    "ready: CPU of a start": "Start: CPU",
    "resident memory when idle": "Idle server: memory",
    "get/pod/json/c16": "GET a Pod: CPU",
    "list/pod/1000/cached/json": "LIST 1,000 Pods: CPU",
    "create/configmap/c16": "Create a ConfigMap: CPU",
    "create/pod/c16": "Create a Pod: CPU",
    "update/pod/put/c16": "Update a Pod: CPU",
    "update/pod/apply/c16": "Apply a Pod: CPU",
    "watch/json/w1000": "Event to one of 1,000 watchers: CPU",
    "memory of a Pod of 3.7 KB, 10,000 of them": "Stored Pod of 3.7 KB: memory",
    "GET through an aggregated server": "GET through an aggregated server: CPU",
    "the discovery and OpenAPI of each, read: CPU": "OpenAPI of a new definition, read: CPU",
}
"""Captions of the chart by the label of their table row, from top to bottom."""
_LEFT, _BAR, _RIGHT = 285, 330, 190
"""Widths in pixels of the captions, of the longest bar, and of the texts behind a bar."""
_TOP, _ROW, _THICK = 58, 38, 13
"""Heights in pixels of the legend, of a row and of a bar."""
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:11px}.page{fill:#fff}.theirs{fill:#9aa4b2}"
    ".ours{fill:#2563c9}"
)


@dataclass(frozen=True)
class Comparison:
    """A row of the table: figures of both servers, in one unit, and their ratio, as written."""

    label: str
    theirs: str
    ours: str
    ratio: str


def comparisons(page: str) -> dict[str, Comparison]:
    """Return the rows of the comparison table of a page by their labels. Of equal labels the first counts."""
    section = page.partition(f"\n## {SECTION}\n")[2].partition("\n## ")[0]
    rows: dict[str, Comparison] = {}
    for cells in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE):
        rows.setdefault(cells[0], Comparison(*cells))
    return rows


def amount(figure: str) -> float:
    """Return the number of a figure such as "1,340 us"."""
    return float(figure.split()[0].replace(",", ""))


def chart(rows: Iterable[tuple[str, Comparison]]) -> str:
    """Return the SVG of rows, each with its caption."""
    rows = list(rows)
    width, height = _LEFT + _BAR + _RIGHT, _TOP + len(rows) * _ROW + 12
    title = "kube-apiserver with etcd, and Steersman: less is better"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
        f'<rect class="theirs" x="{_LEFT}" y="18" width="13" height="13"/>',
        f'<text x="{_LEFT + 20}" y="29">kube-apiserver, etcd</text>',
        f'<rect class="ours" x="{_LEFT + 170}" y="18" width="13" height="13"/>',
        f'<text x="{_LEFT + 190}" y="29">Steersman</text>',
        f'<text class="small" x="{_LEFT + 270}" y="29">less is better, each row to its own scale</text>',
    ]
    for number, (caption, row) in enumerate(rows):
        top = _TOP + number * _ROW
        longest = max(amount(row.theirs), amount(row.ours))
        parts.append(f'<text x="{_LEFT - 10}" y="{top + 18}" text-anchor="end">{escape(caption)}</text>')
        for at, (name, figure) in enumerate((("theirs", row.theirs), ("ours", f"{row.ours} ({row.ratio})"))):
            y, length = top + at * (_THICK + 1), amount(figure) / longest * _BAR
            parts.append(f'<rect class="{name}" x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_THICK}"/>')
            text = f'<text class="small" x="{_LEFT + length + 6:.1f}" y="{y + 11}">{escape(figure)}</text>'
            parts.append(text)
    return "\n".join([*parts, "</svg>"]) + "\n"


def picture(page: str) -> str:
    """Return the SVG of the chosen rows of a page. Raises KeyError if the page's table has not all of them."""
    found = comparisons(page)
    return chart((caption, found[label]) for label, caption in CHOSEN.items())


def main() -> int:
    """Write the chart; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(picture(PAGE.read_text()))
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
