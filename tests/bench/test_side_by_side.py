"""The runner of the load generator: medians that the generator can read, servers that are started and ended."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from bench import side_by_side
from bench.side_by_side import (
    Run,
    ServerNotStarted,
    Side,
    compared_in_turns,
    end,
    in_turns,
    measure,
    median,
    start,
)
from tests.docs.markdown_documents import ROOT, Document

SERVER = """
import json, os, signal, sys
def end(*_):
    print("ended", file=open(sys.argv[1], "a"))
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("started", file=open(sys.argv[1], "a"))
print(json.dumps({"url": sys.argv[2], "token": "t", "pids": {"server": os.getpid()}}), flush=True)
signal.pause()
"""

GENERATOR = """#!/usr/bin/env python3
import json, sys
flags = dict(each.lstrip("-").partition("=")[::2] for each in sys.argv[2:])
with open(__file__ + ".log", "a+") as log:
    print(flags["url"], file=log)
    log.seek(0)
    calls = len(log.readlines())
row = {"name": sys.argv[1], "ops": 10 ** calls, "p50_ms": float(calls)}
json.dump({"cores": 2, "results": [row]}, open(flags["json"], "w"))
"""


def python(code: str, *arguments: str) -> str:
    return shlex.join([sys.executable, "-c", code, *arguments])


def test_counts_stay_integers_when_their_median_falls_between_two() -> None:
    rows = [{"ops": 1200, "processes": 2, "errors": {"HTTP 500": 3}}, {"ops": 1213, "processes": 2, "errors": {}}]
    assert json.dumps(median(rows)) == '{"ops": 1206, "processes": 2, "errors": {"HTTP 500": 3}}'
    rows[1]["errors"] = {"HTTP 500": 6}
    assert json.dumps(median(rows)["errors"]) == '{"HTTP 500": 4}'


def test_other_figures_are_not_rounded() -> None:
    assert median([{"p50_ms": 1, "extra": {"a": 1}}, {"p50_ms": 2, "extra": {"a": 4, "b": 0.5}}]) == {
        "p50_ms": 1.5,
        "extra": {"a": 2.5, "b": 0.5},
    }


def test_the_median_of_three_rounds_is_the_middle_one_and_names_are_kept() -> None:
    assert median([{"name": "get", "p50_ms": value} for value in (9.0, 1.0, 2.0)]) == {"name": "get", "p50_ms": 2.0}


@pytest.mark.parametrize("code", ["", "print('hello')", "print('[1]')", 'print(\'{"url": "x"}\')'])
def test_a_command_without_the_line_is_refused(code: str) -> None:
    with pytest.raises(ServerNotStarted, match="no JSON object with url, token and pids"):
        start(python(code))


def test_a_command_that_says_nothing_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(ServerNotStarted):
        start(python("import time; time.sleep(60)"), limit=0.2)
    assert time.monotonic() - began < 30


def test_a_server_is_ended_by_sigterm(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server, reach = start(python(SERVER, str(log), "https://127.0.0.1:1"))
    assert (reach["url"], reach["pids"]) == ("https://127.0.0.1:1", {"server": server.pid})
    end(server)
    assert server.returncode == 0
    assert log.read_text().split() == ["started", "ended"]


def test_each_run_has_a_fresh_server_and_the_order_changes_every_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = tmp_path / "load"
    generator.write_text(GENERATOR)
    generator.chmod(0o755)
    monkeypatch.setattr(side_by_side, "LOAD", generator)
    log = tmp_path / "log"
    sides = [Side(name, python(SERVER, str(log), name)) for name in ("one", "two")]
    first, second = measure(sides, [Run("get")], rounds=2, scale="quick")
    assert (tmp_path / "load.log").read_text().split() == ["one", "two", "two", "one"]
    assert log.read_text().split() == ["started", "ended"] * 4
    assert (first["server"], first["rounds"], first["cores"]) == ("one", 2, 2)
    assert json.dumps(first["results"]) == '[{"name": "get", "ops": 5005, "p50_ms": 2.5}]'
    assert json.dumps(second["results"]) == '[{"name": "get", "ops": 550, "p50_ms": 2.5}]'


@pytest.mark.slow
def test_in_turns_both_run_all_the_time_and_what_was_made_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = tmp_path / "load"
    generator.write_text(GENERATOR.replace("print(flags", "assert 'clean' in flags; print(flags"))
    generator.chmod(0o755)
    monkeypatch.setattr(side_by_side, "LOAD", generator)
    log = tmp_path / "log"
    sides = [Side(name, python(SERVER, str(log), name)) for name in ("one", "two")]
    pairs = in_turns(sides, Run("get"), 3, "quick")
    assert (tmp_path / "load.log").read_text().split() == ["one", "two", "two", "one", "one", "two"]
    assert log.read_text().split() == ["started"] * 2 + ["ended"] * 2
    assert [(a["p50_ms"], b["p50_ms"]) for a, b in pairs["get"]] == [(1.0, 2.0), (4.0, 3.0), (5.0, 6.0)]


def test_a_machine_that_changes_its_speed_changes_no_ratio_of_pairs() -> None:
    def row(cost: float) -> dict[str, float]:
        return {"server_cpu_us_per_op": cost, "ops_per_second": 1000 / cost, "p50_ms": cost}

    pairs = [(row(100.0 * slow), row(50.0 * slow)) for slow in (1, 1, 3, 3, 3)]
    assert compared_in_turns({"get": pairs}).splitlines()[1].split() == [
        "get",
        "300.0",
        "150.0",
        "0.50",
        "0.50-0.50",
        "2.00",
        "0.50",
    ]


def test_the_line_in_the_documents_starts_a_measurement() -> None:
    (line,) = Document(ROOT / "bench" / "README.md").blocks("json")
    line = " ".join(line.split())
    process, found = start(python("import sys, time; print(sys.argv[1], flush=True); time.sleep(60)", line))
    end(process)
    assert found["pids"] == {"etcd": 12, "server": 13}
