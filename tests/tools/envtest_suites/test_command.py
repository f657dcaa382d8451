"""Tests of the command that runs a suite, and of the files that a run leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.envtest_suites.command import Specs, alone, end_all_that_use, in_parallel, run
from tools.envtest_suites.report import Run


def test_what_is_to_be_run_is_said_to_one_process_and_to_several(tmp_path: Path) -> None:
    report, specs = tmp_path / "report.json", Specs("creates", "waits", 5)
    assert alone(Path("/a/suite.test"), specs, report) == [
        "/a/suite.test",
        f"-ginkgo.json-report={report}",
        "-ginkgo.no-color",
        "-ginkgo.timeout=5m",
        "-test.timeout=6m",
        "-test.v",
        "-ginkgo.focus=creates",
        "-ginkgo.skip=waits",
    ]
    assert in_parallel(Path("/b/ginkgo"), 4, Path("/a/suite.test"), specs, report) == [
        "/b/ginkgo",
        "run",
        "--procs=4",
        "--json-report=report.json",
        f"--output-dir={tmp_path}",
        "--no-color",
        "--timeout=5m",
        "--focus=creates",
        "--skip=waits",
        "/a/suite.test",
    ]


def test_a_suite_gets_the_programs_and_what_it_reports_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_ASSET_ETCD", "/another")
    scratch, folder = tmp_path / "scratch", tmp_path / "package"
    scratch.mkdir()
    folder.mkdir()
    report = scratch / "report.json"
    reported = '[{"RunTime": 0, "SuiteSucceeded": true, "SpecReports": [{"State": "passed", "LeafNodeType": "It"}]}]'
    script = (
        'test -z "$TEST_ASSET_ETCD" && test "$KUBEBUILDER_ASSETS" = /programs && cd "$TMPDIR" && '
        f"""echo '{reported}' > report.json; test "$OLDPWD" = "$0" """
    )
    assert run(["sh", "-c", script, str(folder)], folder, Path("/programs"), report, 1) == Run(1)
    report.unlink()
    (why,) = run(["sh", "-c", "echo it broke; exit 3"], folder, Path("/programs"), report, 1).failed.values()
    assert why.startswith("ended with 3: it broke")


def test_programs_that_a_suite_left_are_ended_and_no_others(tmp_path: Path) -> None:
    program = "print(flush=True); import time; time.sleep(600)"
    left, other = (
        subprocess.Popen([sys.executable, "-c", program, f"--data-dir={folder}/etcd"], stdout=subprocess.PIPE)
        for folder in (tmp_path / "run-1", tmp_path / "elsewhere")
    )
    with left, other:
        for each in (left, other):
            assert each.stdout is not None
            each.stdout.readline()
        end_all_that_use(str(tmp_path / "run-1"))
        assert left.wait(30) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
