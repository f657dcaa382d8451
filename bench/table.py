#!/usr/bin/env python3
"""Measures the rows of the comparison in docs/performance.md and prints them as a Markdown table.

    python -m bench.table                                  everything, kube-apiserver against Steersman
    python -m bench.table --workloads ready,get --rounds 3
    python -m bench.table --print                          the table of what was measured before

A is the reference (bench/reference, see its `build`), B is `bench/serve`; --a and --b name other commands, of which
side_by_side.py says what they print. DIR/a.json and DIR/b.json keep what was measured: a workload that is run again
replaces its rows, so that the table can be made in parts. Each run has a fresh server, and never two servers at once.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.side_by_side import NOISY, SCALES, Row, Run, ServerNotStarted, Side, build_generator, end_on_sigterm, measure

HERE = Path(__file__).resolve().parent
REFERENCE = shlex.join([sys.executable, str(HERE / "reference" / "reference"), "up"])
STEERSMAN = shlex.join([sys.executable, str(HERE / "serve")])

GETS = (
    "get/pod/json/c16",
    "get/pod/json/c64",
    "get/pod/protobuf/c16",
    "get/pod-cached/json/c16",
    "get/pod-cached/protobuf/c16",
)
UPDATES = (
    *(f"update/{kind}/{verb}/c16" for kind in ("configmap", "pod") for verb in ("put", "merge", "apply")),
    "update/pod/status/c16",
)

RUNS = (
    Run("ready"),
    Run("get", (f"--only={','.join(GETS)}",)),
    Run("list", ("--sizes=1000", "--formats=json,json+gzip,protobuf", "--only=/cached/")),
    Run("list", ("--sizes=10000", "--formats=json", "--only=list/pod/10000/cached/")),
    Run("create", ("--concurrency=16", "--only=create/configmap/")),
    Run("create", ("--concurrency=16", "--only=create/pod/")),
    Run("update", ("--concurrency=16", f"--only={','.join(UPDATES)}")),
    Run("watch", ("--formats=json", "--watchers=100,500,1000", "--only=watch/json/")),
    Run("memory", ("--only=memory/configmap/",)),
    Run("memory", ("--only=memory/pod/",)),
    Run("list", ("--sizes=1000", "--formats=json,json+gzip", "--only=list/widget/1000/cached/")),
    Run("create", ("--concurrency=16", "--only=create/widget/")),
    Run("update", ("--concurrency=16", "--only=update/widget/")),
    Run("watch", ("--formats=json", "--watchers=1000", "--only=watch/widget/")),
    Run("memory", ("--only=memory/widget/",)),
    Run("definitions"),
    Run("restart"),
    Run("aggregated", ("--concurrency=16",)),
)
"""Runs on a fresh server each: together exactly the rows of FIGURES."""


@dataclass(frozen=True)
class Figure:
    """A line of the table: one figure of a row of the reports."""

    label: str
    row: str
    unit: str
    read: Callable[[Row], float]


def cpu_us(row: Row) -> float:
    return float(row["server_cpu_us_per_op"])


def cpu_ms(row: Row) -> float:
    return cpu_us(row) / 1000


def median_ms(row: Row) -> float:
    return float(row["p50_ms"])


def resident_mib(row: Row) -> float:
    return float(row["rss_after_mib"])


def resident_kib_per_object(row: Row) -> float:
    return float(row["extra"]["rss_kib_per_object"])


FIGURES = (
    Figure("ready: wall time to `/readyz`", "ready", "ms", median_ms),
    Figure("ready: CPU of a start", "ready", "ms", cpu_ms),
    Figure("resident memory when idle", "ready", "MiB", resident_mib),
    *(Figure(row, row, "us", cpu_us) for row in GETS),
    *(
        Figure(row := f"list/{kind}/1000/cached/{form}", row, "ms", cpu_ms)
        for kind in ("configmap", "pod")
        for form in ("json", "json+gzip", "protobuf")
    ),
    Figure("list/pod/10000/cached/json: CPU", "list/pod/10000/cached/json", "ms", cpu_ms),
    Figure("list/pod/10000/cached/json: wall time, median", "list/pod/10000/cached/json", "ms", median_ms),
    *(Figure(row, row, "us", cpu_us) for row in ("create/configmap/c16", "create/pod/c16", *UPDATES)),
    Figure("watch/json/w100, an event delivered", "watch/json/w100", "us", cpu_us),
    *(Figure(row, row, "us", cpu_us) for row in ("watch/json/w500", "watch/json/w1000")),
    *(
        Figure(f"memory of {what}, {row[-5:-3]},000 of them", row, "KiB", resident_kib_per_object)
        for what, row in (
            ("a ConfigMap of 1 KiB", "memory/configmap/10000"),
            ("a ConfigMap of 1 KiB", "memory/configmap/50000"),
            ("a Pod of 3.7 KB", "memory/pod/10000"),
            ("a custom resource of 1.6 KB", "memory/widget/10000"),
        )
    ),
    *(Figure(row := f"list/widget/1000/cached/{form}", row, "ms", cpu_ms) for form in ("json", "json+gzip")),
    *(
        Figure(row, row, "us", cpu_us)
        for row in ("create/widget/c16", *(f"update/widget/{verb}/c16" for verb in ("put", "merge", "apply", "status")))
    ),
    Figure("watch/widget/json/w1000, an event delivered", "watch/widget/json/w1000", "us", cpu_us),
    Figure("a definition of 30 KB, 500 made and published: CPU", "definitions/make/500", "ms", cpu_ms),
    Figure("the discovery and OpenAPI of each, read: CPU", "definitions/read/500", "ms", cpu_ms),
    Figure("each used for the first time: CPU", "definitions/use/500", "ms", cpu_ms),
    Figure("memory of each, made", "definitions/make/500", "KiB", resident_kib_per_object),
    Figure("memory of each, used", "definitions/use/500", "KiB", resident_kib_per_object),
    Figure(
        "restart with 500 definitions and 10,000 objects: wall time to `/readyz`", "restart/500/10000", "ms", median_ms
    ),
    Figure("the same: CPU", "restart/500/10000", "ms", cpu_ms),
    Figure("GET through an aggregated server", "aggregated/get/c16", "us", cpu_us),
)
"""The lines of the table, in its order; CPU is user and system time of all processes of a server for one operation."""


def amount(figure: float, unit: str) -> str:
    return f"{figure:,.0f} {unit}" if figure >= 100 else f"{figure:.1f} {unit}"


def ratio(a: float, b: float) -> str:
    """B over A as it reads best: 1/4.7 where B is the smaller, else 1.3; "-" where there is nothing to divide by."""
    if a <= 0 or b <= 0:
        return "-"
    small, large = sorted((a, b))
    text = f"{large / small:.1f}" if large < 9.95 * small else f"{large / small:.0f}"
    return f"1/{text}" if b < a and text != "1.0" else text


def table(a: dict[str, Any], b: dict[str, Any]) -> str:
    """The Markdown table of two reports, of the lines that at least one has figures for; "-" where one has none."""
    sides = [measured(report) for report in (a, b)]
    lines = [f"| row | {a['server']} | {b['server']} | ratio |", "|---|--:|--:|--:|"]
    for figure in FIGURES:
        if not any(figure.row in rows for rows in sides):
            continue
        values = [figure.read(rows[figure.row]) if figure.row in rows else None for rows in sides]
        cells = ["-" if value is None else amount(value, figure.unit) for value in values]
        one, two = values
        cells.append("-" if one is None or two is None else ratio(one, two))
        lines.append(f"| {figure.label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measured(report: dict[str, Any]) -> dict[str, Row]:
    """The rows of a report by name, without those in which no operation succeeded."""
    return {row["name"]: row for row in report["results"] if row["ops"]}


def workload(row: str) -> str:
    """The workload that a row is of."""
    return row.split("/")[0]


def missing(report: dict[str, Any], workloads: Sequence[str]) -> list[str]:
    """The rows of the table that are of these workloads, and of which the report has no figures."""
    wanted = [row for row in dict.fromkeys(figure.row for figure in FIGURES) if workload(row) in workloads]
    return [row for row in wanted if row not in measured(report)]


def remarks(report: dict[str, Any]) -> list[str]:
    """Return reasons to doubt a report's figures: rows with errors, or rows that ran beside others."""
    name, rows, found = report["server"], measured(report), []
    for row in report["results"]:
        found += [f"{name}: {row['name']}: {count} x {error}" for error, count in (row.get("errors") or {}).items()]
    noisy = [row for row, figures in rows.items() if figures["other_cores"] > NOISY]
    if noisy:
        found.append(f"{name}: others used more than {NOISY} cores during {', '.join(noisy)}")
    return found


def merge(old: dict[str, Any], new: dict[str, Any], measured_again: str) -> dict[str, Any]:
    """The new report of a workload with the rows that the old one has of other workloads."""
    kept = [row for row in old["results"] if workload(row["name"]) != measured_again]
    return new | {"cores": new["cores"] or old["cores"], "results": kept + new["results"]}


def read(path: Path) -> dict[str, Any]:
    """A report that was kept; an empty one if there is none."""
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cores": 0, "results": []}
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    workloads = list(dict.fromkeys(run.workload for run in RUNS))
    parser.add_argument("--a", default=REFERENCE, metavar="COMMAND", help="starts the reference")
    parser.add_argument("--b", default=STEERSMAN, metavar="COMMAND", help="starts the server to compare with it")
    parser.add_argument("--name-a", default="kube-apiserver")
    parser.add_argument("--name-b", default="Steersman")
    parser.add_argument("--workloads", default=",".join(workloads), help="separated by commas; all by default")
    parser.add_argument("--rounds", type=int, default=1, help="figures are medians over the rounds")
    parser.add_argument("--scale", choices=SCALES, default="quick", help="how long each row takes")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), metavar="DIR", help="keeps a.json and b.json")
    parser.add_argument("--print", action="store_true", help="print the table of DIR, measure nothing")
    arguments = parser.parse_args()
    files = [arguments.out / "a.json", arguments.out / "b.json"]
    selected = arguments.workloads.split(",")
    if not arguments.print:
        if unknown := sorted(set(selected) - set(workloads)):
            parser.error(f"the table has no workload {', '.join(unknown)}")
        if arguments.rounds < 1:
            parser.error("at least one round")
        end_on_sigterm()
        build_generator()
        arguments.out.mkdir(parents=True, exist_ok=True)
        sides = [Side(arguments.name_a, arguments.a), Side(arguments.name_b, arguments.b)]
        for name in (each for each in workloads if each in selected):
            runs = [run for run in RUNS if run.workload == name]
            try:
                reports = measure(sides, runs, arguments.rounds, arguments.scale)
            except ServerNotStarted as error:
                sys.exit(str(error))
            for path, report in zip(files, reports, strict=True):
                path.write_text(json.dumps(merge(read(path), report, name), indent=1) + "\n")
    a, b = (read(path) for path in files)
    if not (a["results"] or b["results"]):
        sys.exit(f"nothing was measured in {arguments.out} yet")
    print(f"\n{table(a, b)}")
    for report in (a, b):
        for remark in remarks(report):
            print(remark, file=sys.stderr)
        if absent := missing(report, selected):
            print(f"{report['server']}: no figures of {', '.join(absent)}", file=sys.stderr)
    return 1 if missing(a, selected) or missing(b, selected) else 0


if __name__ == "__main__":
    sys.exit(main())
