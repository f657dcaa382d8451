#!/usr/bin/env python3
"""Runs the workloads of `bench/load` against one or two API servers in turn, and prints what B costs over A.

    python -m bench.side_by_side --a COMMAND --b COMMAND --rounds 3 --out-a a.json --out-b b.json
    python -m bench.side_by_side --a COMMAND --out-a a.json      one server only
    python -m bench.side_by_side --table a.json                  a saved report as Markdown
    python -m bench.side_by_side --a COMMAND --b COMMAND --turns 10      both at hand, by turns

A server command stays in the foreground, prints one JSON line once it is ready, and ends on SIGTERM (README.md has what
the workload "restart" asks of it):
  {"url": "https://127.0.0.1:...", "ca": FILE, "token": TOKEN OF AN ADMINISTRATOR, "pids": {NAME: PID, ...},
   "users": {TOKEN: {"user": "alice" | "system:node:node-a" ...}}}          (ca and users are optional)
Each workload gets a fresh server, and only one server runs at a time, or with --turns both, of which one is asked.
Which goes first changes every round.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

LOAD = Path(__file__).resolve().parent / "load" / "load"

Row = dict[str, Any]
"""A row of a report, as `Result` of load/measure.go writes it."""

SCALES = {
    "quick": {
        "ready": ["--runs=3"],
        "get": ["--seconds=2"],
        "list": ["--seconds=1"],
        "create": ["--seconds=2"],
        "admission": ["--seconds=2"],
        "aggregated": ["--seconds=2"],
        "update": ["--seconds=2"],
        "watch": ["--seconds=3"],
        "kubelets": ["--seconds=5"],
        "memory": ["--settle=10"],
        "definitions": ["--settle=10"],
        "restart": ["--runs=3"],
        "mixed": ["--seconds=10"],
        "storm": ["--seconds=10"],
        "bulk": ["--count=10000"],
        "compaction": ["--count=20000", "--seconds=300", "--settle=20"],
    },
    "full": {
        "ready": ["--runs=10"],
        "get": ["--seconds=10"],
        "list": ["--seconds=5"],
        "create": ["--seconds=10"],
        "admission": ["--seconds=10"],
        "aggregated": ["--seconds=10"],
        "update": ["--seconds=10"],
        "watch": ["--seconds=20"],
        "kubelets": ["--seconds=30"],
        "memory": ["--settle=30"],
        "definitions": ["--settle=30"],
        "restart": ["--runs=10"],
        "mixed": ["--seconds=60"],
        "storm": ["--seconds=60"],
        "bulk": ["--count=10000"],
        "compaction": ["--count=100000", "--seconds=600", "--settle=60"],
    },
}
"""The flags of each workload: a quick run of all takes about 8 minutes a server, a full one an estimated 30."""

STARTING = ("ready", "restart")
"""Workloads that start the server themselves."""

NOISY = 0.25
"""Cores used by others, from which on a row is marked with "~"."""

START_LIMIT = 120.0
"""Seconds within which a server has to print its line."""

COUNTS = ("ops", "processes", "errors")
"""Integers in load/measure.go: only these are rounded if a median falls between two values."""


class ServerNotStarted(Exception):
    """A server command ended, or printed something else than the line that is asked for."""


@dataclass(frozen=True)
class Side:
    """A server to measure."""

    name: str
    command: str


@dataclass(frozen=True)
class Run:
    """A workload on a fresh server, with flags of `load` of its own."""

    workload: str
    flags: tuple[str, ...] = ()


def build_generator() -> None:
    """Builds bench/load/load anew if Go is there; otherwise one that was built before is used."""
    if shutil.which("go"):
        subprocess.run(["go", "build", "-o", "load", "."], cwd=LOAD.parent, check=True)
    elif not LOAD.exists():
        sys.exit("the load generator needs Go to be built: install it, then `make bench-load`")


def end_on_sigterm() -> None:
    """Lets SIGTERM unwind this program, so that a server which it has started ends with it."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        sys.exit(143)

    signal.signal(signal.SIGTERM, leave)


def end(server: subprocess.Popen[str]) -> None:
    """Ends a server that was started here, by SIGTERM first: it may have processes of its own to end."""
    server.terminate()
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def start(
    command: str, limit: float = START_LIMIT, core: int | None = None
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Starts a server, on one core if one is given, and returns it with what its line says. Raises ServerNotStarted."""
    server = subprocess.Popen([*on_core(core), *shlex.split(command)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    late = threading.Timer(limit, end, [server])
    late.start()
    try:
        with server.stdout:
            line = server.stdout.readline()
        try:
            reach = json.loads(line)
        except ValueError:
            reach = None
        if not (isinstance(reach, dict) and {"url", "token", "pids"} <= set(reach)):
            raise ServerNotStarted(f"{command}: no JSON object with url, token and pids, but {line[:200]!r}")
    except BaseException:
        end(server)
        raise
    finally:
        late.cancel()
    return server, reach


def on_core(core: int | None) -> list[str]:
    """Return what a command begins with that is to stay on one core."""
    return [] if core is None else ["taskset", "--cpu-list", str(core)]


def run_once(run: Run, command: str, flags: Sequence[str], out: Path) -> dict[str, Any]:
    """One workload on a fresh server: its report, kept in `out`. A workload that fails says why and has no rows.

    Raises ServerNotStarted, but not for the workloads that start the server themselves.
    """
    if run.workload in STARTING:
        arguments = [str(LOAD), run.workload, f"--json={out}", *flags, *run.flags, f"--command={command}"]
        subprocess.run(arguments, check=False)
        return report_in(out)
    server, reach = start(command)
    try:
        return load(run, reach, flags, out)
    finally:
        if (code := server.poll()) is not None:
            print(f"{command} ended with {code} while it was measured", file=sys.stderr, flush=True)
        end(server)


def load(run: Run, reach: dict[str, Any], flags: Sequence[str], out: Path, core: int | None = None) -> dict[str, Any]:
    """One workload on a server that runs, of which `reach` tells: its report, kept in `out`."""
    tokens = {user["user"]: token for token, user in reach.get("users", {}).items()}
    pids = ",".join(f"{name}={pid}" for name, pid in reach["pids"].items())
    arguments = [
        *on_core(core),
        str(LOAD),
        run.workload,
        f"--json={out}",
        *flags,
        *run.flags,
        f"--url={reach['url']}",
        f"--ca={reach.get('ca', '')}",
        f"--token={reach['token']}",
        f"--server-pids={pids}",
    ]
    if run.workload in ("memory", "definitions"):
        arguments.append("--gc-path=/debug/pprof/heap?gc=1")
    if run.workload == "storm":
        arguments.append(f"--storm-token={tokens.get('alice', '')}")
        arguments.append(f"--system-token={tokens.get('system:node:node-a', '')}")
    subprocess.run(arguments, check=False)
    return report_in(out)


def report_in(out: Path) -> dict[str, Any]:
    """Return the report that a workload has written; no rows if it has failed."""
    report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"results": []}
    return report


def median(values: Sequence[Any], *, whole: bool = False) -> Any:
    """The median of each number in values of one shape; of mappings over the union of their keys.

    With `whole` numbers stay integers, as those named in COUNTS do wherever they stand. What is neither mapping nor
    number is that of the first.
    """
    first = values[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in values for key in value)
        return {
            key: median([value[key] for value in values if key in value], whole=whole or key in COUNTS) for key in keys
        }
    if isinstance(first, (int, float)):
        middle = statistics.median(values)
        return round(middle) if whole else middle
    return first


def measure(sides: Sequence[Side], runs: Iterable[Run], rounds: int, scale: str) -> list[dict[str, Any]]:
    """Runs everything on every side, and returns a report for each: rows are medians over the rounds.

    Raises ServerNotStarted.
    """
    seen: list[dict[str, list[Row]]] = [{} for _ in sides]
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    cores = 0
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            for number in range(rounds):
                order = list(enumerate(sides))
                for at, side in order if number % 2 == 0 else reversed(order):
                    print(f"\n== {' '.join((run.workload, *run.flags))}, round {number + 1}: {side.name}", flush=True)
                    out = Path(tempfile.mkdtemp(dir=folder)) / "report.json"
                    report = run_once(run, side.command, SCALES[scale][run.workload], out)
                    cores = report.get("cores", cores)
                    for row in report["results"]:
                        seen[at].setdefault(row["name"], []).append(row)
    return [
        {
            "server": side.name,
            "when": began,
            "cores": cores,
            "rounds": rounds,
            "scale": scale,
            "results": [median(rows) for rows in seen[at].values()],
        }
        for at, side in enumerate(sides)
    ]


def in_turns(
    sides: Sequence[Side], run: Run, turns: int, scale: str, cores: tuple[int, int] | None = None
) -> dict[str, list[tuple[Row, Row]]]:
    """Both servers run all the time and have the workload in turns: for each row a pair of every turn.

    `cores` are those that the servers and the generator stay on. What was made is deleted after each. Raises
    ServerNotStarted.
    """
    of_servers, of_generator = cores or (None, None)
    found: dict[str, list[tuple[Row, Row]]] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        reaches = []
        for side in sides:
            server, reach = start(side.command, core=of_servers)
            stack.callback(end, server)
            reaches.append(reach)
        for number in range(turns):
            rows: list[dict[str, Row]] = [{}, {}]
            for at in (0, 1) if number % 2 == 0 else (1, 0):
                print(f"\n== {run.workload}, turn {number + 1}: {sides[at].name}", flush=True)
                out = folder / f"{number}-{at}"
                report = load(run, reaches[at], [*SCALES[scale][run.workload], "--clean"], out, of_generator)
                rows[at] = {row["name"]: row for row in report["results"]}
            for name, row in rows[0].items():
                if name in rows[1]:
                    found.setdefault(name, []).append((row, rows[1][name]))
    return found


def compared_in_turns(pairs: dict[str, list[tuple[Row, Row]]]) -> str:
    """A table of what `in_turns` has found: medians of each side, and of the ratios of pairs, with quartiles."""
    lines = [told("row (ratios are B/A)", "A us/op", "B us/op", "cpu", "quartiles", "ops/s", "p50")]
    for name, of_row in pairs.items():
        cpu = ratios(of_row, "server_cpu_us_per_op")
        low, middle, high = statistics.quantiles(cpu, n=4) if len(cpu) > 1 else cpu * 3
        costs = [median([pair[at]["server_cpu_us_per_op"] for pair in of_row]) for at in (0, 1)]
        others = [statistics.median(ratios(of_row, key)) for key in ("ops_per_second", "p50_ms")]
        lines.append(
            told(
                name,
                *(f"{cost:.1f}" for cost in costs),
                f"{middle:.2f}",
                f"{low:.2f}-{high:.2f}",
                *(f"{other:.2f}" for other in others),
            )
        )
    return "\n".join(lines)


def told(name: str, *cells: str) -> str:
    """A line of that table."""
    return f"  {name:34}" + "".join(f" {cell:>9}" for cell in cells)


def ratios(pairs: Sequence[tuple[Row, Row]], key: str) -> list[float]:
    """Return the ratio of a figure in each pair."""
    return [b[key] / a[key] for a, b in pairs if a[key]] or [0.0]


def compare(a: Path, b: Path) -> None:
    """Prints B over A for every row that both reports have."""
    subprocess.run([str(LOAD), "compare", str(a), str(b)], check=True)


def report_as_markdown(report: dict[str, Any]) -> str:
    """A report as a Markdown table, with all its figures; "~" marks rows during which others used the processors."""
    rows = report["results"]
    roots = sorted({name for row in rows for name in row.get("server_cpu_us_per_op_by_process") or {}}, reverse=True)
    heads = ["row", "ops/s", "p50 ms", "p99 ms", *(f"{name} us/op" for name in roots), "sum us/op", "also"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 2) + "---|"]
    for row in rows:
        by = row.get("server_cpu_us_per_op_by_process") or {}
        also = [f"{key} {value:.4g}" for key, value in (row.get("extra") or {}).items() if value]
        also += [f"{key} x{count}" for key, count in (row.get("errors") or {}).items()]
        figures = [row[key] for key in ("ops_per_second", "p50_ms", "p99_ms")]
        cells = [
            ("~ " if row["other_cores"] > NOISY else "") + row["name"],
            *(f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}" for figure in figures),
            *(f"{by[name]:.0f}" if name in by else "" for name in roots),
            f"{row['server_cpu_us_per_op']:.0f}",
            ", ".join(also),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cores(text: str) -> tuple[int, int]:
    """Return the numbers of two cores, between which is a comma."""
    of_servers, of_generator = text.split(",")
    return int(of_servers), int(of_generator)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.side_by_side", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--a", metavar="COMMAND", help="starts the first server")
    parser.add_argument("--b", metavar="COMMAND", help="starts the second server; without it only A is measured")
    parser.add_argument("--name-a", default="A")
    parser.add_argument("--name-b", default="B")
    parser.add_argument("--workloads", default=",".join(SCALES["quick"]), help="separated by commas; all by default")
    parser.add_argument("--rounds", type=int, default=1, help="rows are medians over the rounds")
    parser.add_argument(
        "--turns",
        type=int,
        default=0,
        metavar="N",
        help="both run all the time and have each workload in N turns: ratios are of pairs, and hold where the "
        "machine is now faster, now slower",
    )
    parser.add_argument(
        "--cores",
        type=cores,
        metavar="A,B",
        help="with --turns: the core that both servers stay on, and that of the generator, so that neither costs the "
        "other its caches",
    )
    parser.add_argument("--scale", choices=SCALES, default="quick", help="how long each row takes")
    parser.add_argument("--flag", action="append", default=[], help="one more flag of load, e.g. --flag=--only=json")
    parser.add_argument("--out-a", type=Path, metavar="FILE", help="where the report on A goes")
    parser.add_argument("--out-b", type=Path, metavar="FILE", help="where the report on B goes")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print a saved report, measure nothing")
    arguments = parser.parse_args()
    if arguments.table:
        print(report_as_markdown(json.loads(arguments.table.read_text())))
        return
    workloads = arguments.workloads.split(",")
    if not arguments.a or arguments.rounds < 1:
        parser.error("--a is required, and at least one round")
    if unknown := sorted(set(workloads) - set(SCALES["quick"])):
        parser.error(f"no such workload: {', '.join(unknown)}")
    end_on_sigterm()
    build_generator()
    sides = [Side(arguments.name_a, arguments.a)]
    if arguments.b:
        sides.append(Side(arguments.name_b, arguments.b))
    runs = [Run(workload, tuple(arguments.flag)) for workload in workloads]
    if arguments.turns:
        if not arguments.b or set(workloads) & set(STARTING):
            parser.error(f"--turns is for two servers, and not for {', '.join(STARTING)}")
        try:
            for run in runs:
                pairs = in_turns(sides, run, arguments.turns, arguments.scale, arguments.cores)
                print(f"\n== {run.workload}: A is {sides[0].name}, B is {sides[1].name}", flush=True)
                print(compared_in_turns(pairs), flush=True)
        except ServerNotStarted as error:
            sys.exit(str(error))
        return
    try:
        reports = measure(sides, runs, arguments.rounds, arguments.scale)
    except ServerNotStarted as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory() as folder:
        files: list[Path] = []
        for report, out in zip(reports, (arguments.out_a, arguments.out_b), strict=False):
            files.append(out or Path(folder) / f"{len(files)}.json")
            files[-1].write_text(json.dumps(report, indent=1) + "\n")
        if len(files) == 2:
            print(f"\n== A is {arguments.name_a}, B is {arguments.name_b}", flush=True)
            compare(*files)


if __name__ == "__main__":
    main()
