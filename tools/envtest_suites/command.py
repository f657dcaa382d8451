"""controller-runtime's own tests, through the programs of `steersman envtest` and through the real ones.

    python -m tools.envtest_suites
    python -m tools.envtest_suites --suite pkg/client --suite pkg/cache --focus "should create"
    python -m tools.envtest_suites --real FOLDER

The module is downloaded with Go into the user's cache, copied there so that its tests can write beside them, and every
package whose tests use envtest is built once and run with either set of programs. FOLDER holds kube-apiserver and etcd;
by default the folder that $STEERSMAN_REFERENCE names, if they are there. A table tells of both, then what fails only
here, and why. Exit code 1 if something does. Needs Go; the first run takes some minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steersman.cli.envtest import assets
from tools.envtest_suites.report import Run, differences, read, table

MODULE: Final = "sigs.k8s.io/controller-runtime"
VERSION: Final = "v0.24.1"
"""The last release for Kubernetes 1.36."""
CACHE: Final = assets.cache_folder()
PROGRAMS: Final = Path(os.environ.get("STEERSMAN_REFERENCE") or CACHE / "steersman-reference")
_USES: Final = re.compile(rb"\b(Environment|ControlPlane|APIServer|Etcd)\{")


def go() -> str:
    """The Go command. Ends the program if there is none."""
    found = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
    return found or sys.exit("the tests are built with Go: put it in PATH")


def checked_out(version: str) -> Path:
    """The module's files in a folder of their own, which can be written to."""
    folder = CACHE / "steersman" / "envtest-suites" / version
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as empty:
            told = subprocess.run(
                [go(), "mod", "download", "-json", f"{MODULE}@{version}"], cwd=empty, stdout=subprocess.PIPE, check=True
            )
            copy = Path(empty) / "copy"
            shutil.copytree(json.loads(told.stdout)["Dir"], copy, copy_function=shutil.copyfile)
            for each in (copy, *copy.rglob("*")):
                each.chmod(0o755 if each.is_dir() or each.suffix == ".sh" else 0o644)
            copy.rename(folder)
    return folder


def suites(source: Path) -> list[str]:
    """The packages whose tests start a control plane."""
    users = (path for path in source.rglob("*_test.go") if _USES.search(path.read_bytes()))
    return sorted({path.parent.relative_to(source).as_posix() for path in users})


def built(source: Path, suite: str) -> Path | None:
    """The tests of a package as a program; None if they cannot be built, which the compiler tells."""
    program = source / ".built" / suite.replace("/", "_")
    program.parent.mkdir(exist_ok=True)
    if not program.exists():
        done = subprocess.run([go(), "test", "-c", "-o", str(program), f"./{suite}"], cwd=source, check=False)
        if done.returncode != 0:
            return None
    return program


def run(program: Path, folder: Path, programs: Path, arguments: Sequence[str], minutes: int) -> Run:
    """Runs the tests of a package in its folder with these programs."""
    with tempfile.TemporaryDirectory(prefix="envtest-suites-") as scratch:
        report, output = Path(scratch) / "report.json", Path(scratch) / "output"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TEST_ASSET_")}
        environment |= {"KUBEBUILDER_ASSETS": str(programs), "TMPDIR": scratch}
        with output.open("wb") as said:
            process = subprocess.Popen(
                [program, f"-ginkgo.json-report={report}", "-ginkgo.no-color", f"-ginkgo.timeout={minutes}m",
                 f"-test.timeout={minutes + 1}m", "-test.v", *arguments],
                cwd=folder, env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            try:
                process.wait((minutes + 2) * 60)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                end_all_that_use(scratch)
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
    parser.add_argument("--version", default=VERSION, help=f"of controller-runtime, by default {VERSION}")
    parser.add_argument("--suite", action="append", help="a package, such as pkg/client; by default all")
    parser.add_argument("--focus", help="only specs whose names match")
    parser.add_argument("--skip", help="no specs whose names match")
    parser.add_argument("--real", type=Path, default=PROGRAMS, metavar="FOLDER", help="the real programs")
    parser.add_argument("--timeout", type=int, default=10, metavar="MINUTES", help="of a suite")
    options = parser.parse_args()
    source = checked_out(options.version)
    named = [f"-ginkgo.{key}={value}" for key, value in (("focus", options.focus), ("skip", options.skip)) if value]
    sides = [("steersman", assets.make(assets.home_folder()))]
    if (options.real / "kube-apiserver").exists() and (options.real / "etcd").exists():
        sides.append(("the real ones", options.real))
    found: list[tuple[str, list[Run]]] = []
    for suite in options.suite or suites(source):
        program = built(source, suite)
        if program is None:
            print(f"{suite} cannot be built", file=sys.stderr)
            continue
        runs = [run(program, source / suite, programs, named, options.timeout) for _, programs in sides]
        found.append((suite, runs))
        print(f"{suite}: {'; '.join(map(str, runs))}", flush=True)
    print(f"\n{table(found, [name for name, _ in sides])}")
    return told(found)


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
