"""Run the tests in several processes, and what fails once more, alone.

    python -m tools.run_tests [--jobs N] [--short] [--record FILE] [--record-longer FILE] [--flaky FILE] [-m MARKS]
                              [-k WORDS] [-x] [--ignore PATH] [PATH...] [--FLAG=VALUE...]

Each process is a pytest of its own for a part of the files. Parts take equally long by the record of durations.
With --short, tests that .ci/longer-tests.txt lists are left out.
A test that fails and passes when it runs by itself is flaky: it is told by name, and written to a file if one is given.
Exit code 0 if nothing failed but flaky tests, else pytest's. Flags that are not listed above are pytest's own.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final, NamedTuple

from tests import durations, longer

_FAILED: Final = 1
"""pytest's exit code for a run that went through, in which tests failed."""
_DIED: Final = 3
"""pytest's exit code for an error of its own, used for a process that ended before pytest did, too."""
_NOTHING: Final = 5
"""pytest's exit code for a run without tests, as that of a part can be."""
_MOST: Final = 10
"""Failed tests that are run once more: where more fail, something is broken."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.run_tests", description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--short", action="store_true", help="leave out longer tests")
    parser.add_argument("--record", metavar="FILE", type=Path, help="write how long each file of tests took")
    parser.add_argument("--record-longer", metavar="FILE", type=Path, help="write which of the fast tests are longer")
    parser.add_argument("--flaky", metavar="FILE", type=Path, help="append the names of flaky tests")
    parser.add_argument("-m", dest="marks", default="", help="run tests of these marks")
    parser.add_argument("-k", dest="words", default="", help="run tests whose names match")
    parser.add_argument("-x", "--exitfirst", action="store_true", help="end all processes when a test fails")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATH", help="leave out a folder or file")
    parser.add_argument("paths", nargs="*", default=["tests"], metavar="PATH", help="run the tests of these")
    return parser


def _files(paths: Sequence[str], ignored: Sequence[str]) -> Iterator[str]:
    """Yield the files of tests in folders. Files, and names of tests such as FILE::TEST, are yielded as they are."""
    for path in dict.fromkeys(paths):
        found = sorted(map(str, Path(path).rglob("test_*.py"))) if Path(path).is_dir() else [path]
        yield from (file for file in found if not any(Path(file).is_relative_to(each) for each in ignored))


class Ended(NamedTuple):
    """Exit code of processes of tests, and the tests that failed in them."""

    code: int
    failed: list[str]


class Processes:
    """Processes of pytest that run parts of the tests. What they leave is in a folder."""

    def __init__(self, flags: Sequence[str], folder: Path) -> None:
        self._command = [sys.executable, "-u", "-m", "pytest", "-ra", *flags]
        self._folder = folder
        self._running: list[subprocess.Popen[str]] = []
        self._reporting = Lock()

    def run(self, parts: Sequence[Sequence[str]], *, exit_first: bool = False) -> Ended:
        """Run all parts and wait for them. With `exit_first`, interrupt the others when one fails."""

        def one(number: int) -> Ended:
            ended = self._run(number, parts[number], None if len(parts) == 1 else subprocess.PIPE)
            if exit_first and ended.code not in {0, _NOTHING}:
                for other in self._running:
                    other.send_signal(signal.SIGINT)
            return ended

        with ThreadPoolExecutor(len(parts)) as threads:
            ended = list(threads.map(one, range(len(parts))))
        # the gravest: a process that did not run all its tests, failed tests, tests that passed
        code = max(
            (each.code for each in ended),
            key=lambda code: (code not in {_FAILED, 0, _NOTHING}, code == _FAILED, code == 0),
        )
        return Ended(code, [test for each in ended for test in each.failed])

    def _run(self, number: int, files: Sequence[str], output: int | None) -> Ended:
        """Print lines of progress when they come, and the report that follows them in one piece."""
        cache = self._folder / f"cache-{number}"
        command = [*self._command, f"--override-ini=cache_dir={cache}", *files]
        with subprocess.Popen(command, stdout=output, text=True, errors="replace") as process:
            self._running.append(process)
            report: list[str] = []
            for line in process.stdout or ():
                if report or "=====" in line:
                    report.append(line)
                else:
                    print(f"{number}: {line}", end="", flush=True)
        self._running.remove(process)
        code, kept = process.returncode, cache / "v" / "cache"
        if code in {0, _FAILED, _NOTHING} and not (kept / "nodeids").exists():  # which pytest writes at its end
            code = _DIED
        with self._reporting:
            print(*report, f"-- process {number} ended with exit code {process.returncode}", sep="", flush=True)
        failed = kept / "lastfailed"
        return Ended(code, list(json.loads(failed.read_text())) if failed.exists() else [])


def _first_run(options: argparse.Namespace, flags: Sequence[str], folder: Path) -> Ended:
    """Run the tests in parts, and record their durations."""
    files = list(_files(options.paths, options.ignore)) if options.jobs > 1 else options.paths
    pace = durations.SHORT if options.short else {"slow": durations.SLOW, "not slow": durations.FAST}.get(options.marks)
    records = folder / "durations"
    records.mkdir()
    own = [f"--record-durations={records}"] if options.record or options.record_longer else []
    own += ["--short"] if options.short else []
    own += [f"--ignore={path}" for path in options.ignore]
    own += [word for flag, value in (("-m", options.marks), ("-k", options.words)) if value for word in (flag, value)]
    own += ["--exitfirst"] if options.exitfirst else []
    parts = durations.parts(files, max(options.jobs, 1), durations.read(), pace)
    ended = Processes([*flags, *own], folder).run(parts, exit_first=options.exitfirst)
    measured = durations.merged(records.iterdir())
    if options.record_longer:
        longer.write(longer.updated(longer.read(options.record_longer), measured.functions), options.record_longer)
    if options.record:
        known = durations.read(options.record)
        durations.write(durations.updated(known, measured, longer.read()), options.record)
    return ended


def main(arguments: Sequence[str]) -> int:
    """Run the tests that the arguments name; return the exit code."""
    parser = _arguments()
    options, flags = parser.parse_known_args(arguments)
    if options.short and (options.record or options.record_longer):
        parser.error("a record is of all fast tests: leave out --short, which `make test TESTS=tests` does")
    if options.record_longer and options.words:
        parser.error("--record-longer compares all tests of a file: leave out -k")
    stops_early = options.exitfirst or any(flag.startswith("--maxfail") for flag in flags)
    with TemporaryDirectory(prefix="tests-") as folder:
        code, failed = _first_run(options, flags, Path(folder))
        print(*(f"FAILED {test}\n" for test in failed), sep="", end="", flush=True)
        if code != _FAILED or not failed or len(failed) > _MOST or stops_early:
            return code
        print(f"\n-- {len(failed)} failed, and each is run once more by itself", flush=True)
        flaky = [test for at, test in enumerate(failed) if _passes_alone(test, flags, Path(folder, f"alone-{at}"))]
    for test in failed:
        print(f"{'FLAKY' if test in flaky else 'FAILED TWICE'} {test}", flush=True)
    if flaky and options.flaky is not None:
        with options.flaky.open("a") as file:
            file.writelines(f"{test}\n" for test in flaky)
    return 0 if len(flaky) == len(failed) else code


def _passes_alone(test: str, flags: Sequence[str], folder: Path) -> bool:
    """Run a test alone; flags of pytest-xdist are undone."""
    in_one = ["--numprocesses=0"] if any(flag.startswith("--numprocesses") for flag in flags) else []
    return Processes([*flags, *in_one], folder).run([[test]]).code == 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # the processes were interrupted, too, and have reported
        sys.exit(130)
