"""The comparison table: its lines are those of the document, and it tells what it has no figures for."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.table import FIGURES, RUNS, amount, merge, missing, ratio, remarks, table
from tests import ROOT


def row(name: str, **figures: Any) -> dict[str, Any]:
    return {"name": name, "ops": 100, "other_cores": 0, "server_cpu_us_per_op": 100, **figures}


def report(server: str, *rows: dict[str, Any], cores: int = 2) -> dict[str, Any]:
    return {"server": server, "cores": cores, "results": list(rows)}


def test_its_lines_are_those_of_the_document() -> None:
    section = (ROOT / "docs" / "performance.md").read_text().partition("\n## Against kube-apiserver\n")[2]
    labels = re.findall(r"^\| (.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert labels == ["row", *(figure.label for figure in FIGURES)]


def test_every_line_is_of_a_workload_that_is_run() -> None:
    assert {figure.row.split("/")[0] for figure in FIGURES} == {run.workload for run in RUNS}


def test_a_line_has_both_figures_and_their_ratio() -> None:
    a = report("one", row("get/pod/json/c16", server_cpu_us_per_op=996.4))
    b = report("two", row("get/pod/json/c16", server_cpu_us_per_op=99.64))
    assert table(a, b).splitlines() == [
        "| row | one | two | ratio |",
        "|---|--:|--:|--:|",
        "| get/pod/json/c16 | 996 us | 99.6 us | 1/10 |",
    ]


def test_figures_are_read_in_the_unit_of_the_line() -> None:
    extra = {"rss_kib_per_object": 16.25}
    rows = [row("memory/configmap/10000", extra=extra), row("list/pod/10000/cached/json", p50_ms=1468.2)]
    assert table(report("one", *rows), report("two", *rows)).splitlines()[2:] == [
        "| list/pod/10000/cached/json: CPU | 0.1 ms | 0.1 ms | 1.0 |",
        "| list/pod/10000/cached/json: wall time, median | 1,468 ms | 1,468 ms | 1.0 |",
        "| memory of a ConfigMap of 1 KiB, 10,000 of them | 16.2 KiB | 16.2 KiB | 1.0 |",
    ]


def test_a_row_without_a_successful_operation_is_no_figure() -> None:
    a = report("one", row("create/pod/c16"))
    b = report("two", row("create/pod/c16", ops=0, errors={"HTTP 500": 12}))
    assert table(a, b).splitlines()[2:] == ["| create/pod/c16 | 100 us | - | - |"]
    assert remarks(b) == ["two: create/pod/c16: 12 x HTTP 500"]
    assert missing(a, ["create"]) == ["create/configmap/c16", "create/widget/c16"]
    assert missing(b, ["create"]) == ["create/configmap/c16", "create/pod/c16", "create/widget/c16"]


def test_rows_that_ran_beside_others_are_named() -> None:
    names = [figure.row for figure in FIGURES if figure.row.startswith("watch/json/")]
    rows = [row(name, other_cores=index / 5) for index, name in enumerate(names)]
    assert remarks(report("one", *rows)) == ["one: others used more than 0.25 cores during watch/json/w1000"]


def test_rows_of_a_workload_that_is_run_again_are_replaced_and_others_kept() -> None:
    old = report("one", row("get/a", ops=1), row("get/b", ops=1), row("list/a", ops=1))
    merged = merge(old, report("one", row("get/a", ops=2)), "get")
    assert [(each["name"], each["ops"]) for each in merged["results"]] == [("list/a", 1), ("get/a", 2)]


def test_a_workload_that_failed_leaves_none_of_its_old_rows() -> None:
    merged = merge(report("one", row("get/a")), report("one", cores=0), "get")
    assert (merged["results"], merged["cores"]) == ([], 2)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [(987, 107, "1/9.2"), (182, 10, "1/18"), (99.6, 10, "1/10"), (100, 130, "1.3"), (100, 99, "1.0"), (0, 5, "-")],
)
def test_ratios_read_as_fractions_where_b_is_the_smaller(a: float, b: float, text: str) -> None:
    assert ratio(a, b) == text


def test_amounts_have_a_decimal_below_a_hundred() -> None:
    assert [amount(figure, "ms") for figure in (3848.3, 100, 93.75, 4.545)] == [
        "3,848 ms",
        "100 ms",
        "93.8 ms",
        "4.5 ms",
    ]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="the load generator is built with Go")
def test_a_workload_is_measured_from_end_to_end(tmp_path: Path) -> None:
    serve = shlex.join([sys.executable, str(ROOT / "bench" / "serve")])
    arguments = [f"--a={serve}", f"--b={serve}", "--name-a=one", "--workloads=get", f"--out={tmp_path}"]
    command = [sys.executable, "-m", "bench.table", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    lines = done.stdout.rpartition("\n\n")[2].splitlines()
    assert lines[0] == "| row | one | Steersman | ratio |"
    expected = [figure.label for figure in FIGURES if figure.row.startswith("get/")]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[2:]] == expected
    assert " - " not in "".join(lines)
    for name in ("a.json", "b.json"):
        rows = json.loads((tmp_path / name).read_text())["results"]
        assert [(each["name"], each.get("errors")) for each in rows] == [(label, None) for label in expected]
