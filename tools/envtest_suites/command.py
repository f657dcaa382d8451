"""Other projects' tests, through the programs of `steersman envtest` and through the real ones.

    python -m tools.envtest_suites
    python -m tools.envtest_suites --module controller-runtime --suite pkg/client --focus "should create"
    python -m tools.envtest_suites --real FOLDER

These are controller-runtime, and operators that others publish (`modules.py`). A module is downloaded with Go into the
user's cache, copied there so that its tests can write beside them, and every package whose tests use envtest is built
once and run with either set of programs. FOLDER holds kube-apiserver and etcd; by default the folder that
$STEERSMAN_REFERENCE names, if they are there. A table tells of both, then what fails only here, and why. Exit code 1 if
something does. Needs Go; the first run of a module takes some minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steersman.cli.envtest import assets
from tools.envtest_suites.modules import CACHE, MODULES, built, checked_out, ginkgo, suites
from tools.envtest_suites.report import Run, differences, read, table

PROGRAMS: Final = Path(os.environ.get("STEERSMAN_REFERENCE") or CACHE / "steersman-reference")


@dataclass(frozen=True, slots=True)
class Specs:
    """Selected specs of a package, by regular expressions of their names, with the time limit in minutes."""

    focus: str | None = None
    skip: str | None = None
    minutes: int = 10


def alone(program: Path, specs: Specs, report: Path) -> list[str]:
    """The command that runs the tests of a package in one process."""
    named = [f"-ginkgo.{key}={value}" for key, value in (("focus", specs.focus), ("skip", specs.skip)) if value]
    return [
        str(program),
        f"-ginkgo.json-report={report}",
        "-ginkgo.no-color",
        f"-ginkgo.timeout={specs.minutes}m",
        f"-test.timeout={specs.minutes + 1}m",
        "-test.v",
        *named,
    ]


def in_parallel(command: Path, processes: int, program: Path, specs: Specs, report: Path) -> list[str]:
    """The command of Ginkgo's that runs the tests of a package in several processes, on one control plane."""
    named = [f"--{key}={value}" for key, value in (("focus", specs.focus), ("skip", specs.skip)) if value]
    return [
        str(command),
        "run",
        f"--procs={processes}",
        f"--json-report={report.name}",
        f"--output-dir={report.parent}",
        "--no-color",
        f"--timeout={specs.minutes}m",
        *named,
        str(program),
    ]


def run(
    command: Sequence[str],
    folder: Path,
    programs: Path,
    report: Path,
    minutes: int,
    variables: Mapping[str, str] | None = None,
) -> Run:
    """Runs the tests of a package in its folder with these programs and environment variables; its files are made beside
    the report.
    """
    scratch, output = report.parent, report.parent / "output"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TEST_ASSET_")}
    environment |= {"KUBEBUILDER_ASSETS": str(programs), "TMPDIR": str(scratch), **(variables or {})}
    with output.open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait((minutes + 2) * 60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            end_all_that_use(str(scratch))
    text = output.read_text(errors="replace")
    found = read(report.read_text() if report.exists() else "[]", text)
    if process.returncode != 0 and not found.failed:
        return Run(found.passed, {"the suite": f"ended with {process.returncode}: {text[-300:]}"}, found.seconds)
    return found


def end_all_that_use(folder: str) -> None:
    """Ends the programs of control planes that a suite did not stop: those with this folder in their command lines."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
            if os.fsencode(folder) in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def main() -> int:
    """Runs the suites; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [each.name for each in MODULES]
    parser.add_argument("--module", action="append", choices=names, help="by default all")
    parser.add_argument("--suite", action="append", help="a package, such as pkg/client; by default all")
    parser.add_argument("--focus", help="only specs whose names match")
    parser.add_argument("--skip", help="no specs whose names match")
    parser.add_argument("--real", type=Path, default=PROGRAMS, metavar="FOLDER", help="the real programs")
    parser.add_argument("--timeout", type=int, default=10, metavar="MINUTES", help="of a suite")
    options = parser.parse_args()
    specs = Specs(options.focus, options.skip, options.timeout)
    sides = {"steersman": assets.make(assets.home_folder())}
    if (options.real / "kube-apiserver").exists() and (options.real / "etcd").exists():
        sides["the real ones"] = options.real
    found: list[tuple[str, list[Run]]] = []
    for module in (each for each in MODULES if each.name in (options.module or names)):
        source = checked_out(module)
        there = module.packages or suites(source)
        for suite in (each for each in options.suite or there if each in there):
            runs = ran(source, suite, module.processes, specs, list(sides.values()))
            if runs:
                found.append((f"{module.name} {suite}", runs))
                print(f"{found[-1][0]}: {'; '.join(map(str, runs))}", flush=True)
    print(f"\n{table(found, list(sides))}")
    return told(found)


def ran(
    source: Path,
    suite: str,
    processes: int,
    specs: Specs,
    sides: Sequence[Path],
    variables: Mapping[str, str] | None = None,
) -> list[Run]:
    """Runs a package with each of the programs; none if it cannot be built."""
    program = built(source, suite)
    command = ginkgo(source) if processes > 1 else None
    if program is None or (processes > 1 and command is None):
        print(f"{suite} cannot be built", file=sys.stderr)
        return []
    runs = []
    for programs in sides:
        with tempfile.TemporaryDirectory(prefix="envtest-suites-") as scratch:
            report = Path(scratch) / "report.json"
            line = (
                alone(program, specs, report)
                if command is None
                else in_parallel(command, processes, program, specs, report)
            )
            runs.append(run(line, source / suite, programs, report, specs.minutes, variables))
    return runs


def told(found: list[tuple[str, list[Run]]]) -> int:
    """Prints what fails only here; the exit code."""
    failures = 0
    for suite, (ours, *real) in found:
        only_here = differences(ours, real[0] if real else None)
        failures += len(only_here)
        if only_here:
            print(f"\n{suite}")
        for name, why in only_here.items():
            print(f"  {name}\n    {why}")
    return 1 if failures else 0
