"""Run the tests in several processes, and what fails once more, alone.

    python -m tools.run_tests [--jobs N] [--record FILE] [--flaky FILE] [-m MARKS] [--ignore PATH] [PATH...] [--FLAG=VALUE...]

A test that fails and passes when it runs by itself is flaky: it is told by name, and written to a file if one is given.
Exit code 0 if nothing failed but flaky tests, else pytest's. Flags that are not listed above are pytest's own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_FAILED: Final = 1
"""pytest's exit code for a run that went through, in which tests failed."""
_MOST: Final = 10
"""Failed tests that are run once more: where more fail, something is broken."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.run_tests", description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1, help="processes, 0 for this one alone")
    parser.add_argument("--dist", default="loadfile", help="unit that goes to a process, as of pytest-xdist")
    parser.add_argument("--record", metavar="FILE", help="write how long each file of tests took")
    parser.add_argument("--flaky", metavar="FILE", type=Path, help="append the names of flaky tests")
    parser.add_argument("-m", dest="marks", help="run tests of these marks")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATH", help="leave out a folder or file")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="run the tests of these folders and files")
    return parser


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-ra", *arguments], check=False).returncode


def _first_run(options: argparse.Namespace, flags: Sequence[str]) -> tuple[int, list[str]]:
    """Run all tests; return pytest's exit code, and the names of those that failed."""
    with TemporaryDirectory(prefix="pytest-cache-") as cache:
        code = _pytest(
            [
                *flags,
                f"--override-ini=cache_dir={cache}",
                f"--numprocesses={options.jobs}",
                f"--dist={options.dist}" if options.jobs else "--dist=no",
                *([f"--record-durations={options.record}"] if options.record else []),
                *(["-m", options.marks] if options.marks else []),
                *(f"--ignore={path}" for path in options.ignore),
                *options.paths,
            ]
        )
        failed = Path(cache, "v", "cache", "lastfailed")
        return code, list(json.loads(failed.read_text())) if failed.exists() else []


def main(arguments: Sequence[str]) -> int:
    """Run the tests that the arguments name; return the exit code."""
    options, flags = _arguments().parse_known_args(arguments)
    code, failed = _first_run(options, flags)
    if code != _FAILED or not failed or len(failed) > _MOST:
        return code
    print(f"\n-- {len(failed)} failed, and each is run once more by itself", flush=True)
    flaky = [test for test in failed if _pytest([*flags, "-p", "no:cacheprovider", "--numprocesses=0", test]) == 0]
    for test in failed:
        print(f"{'FLAKY' if test in flaky else 'FAILED TWICE'} {test}", flush=True)
    if flaky and options.flaky is not None:
        with options.flaky.open("a") as file:
            file.writelines(f"{test}\n" for test in flaky)
    return 0 if len(flaky) == len(failed) else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
