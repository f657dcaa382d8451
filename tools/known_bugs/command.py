"""Known bugs of operators: does `steersman stress` find them, and nothing in the version that repairs them?

    python -m tools.known_bugs
    python -m tools.known_bugs job requests --kinds conflict,lost,stale

An operator is built from its Go module or Python package, in the versions before and after the repair, into the
user's cache. Each version runs under `steersman stress` beside a small workload, for at most --time. A table has what
was found, the seconds after which the bug was, and those of the whole search. Exit code 1 if a bug is not found, or
if something is found after the repair that is not known as a further bug. Needs Go and kubectl; the first build of a
module takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steersman.stress.point import plan_of
from tools.known_bugs.cases import CASES, Case
from tools.known_bugs.programs import Program

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a search."""

    found: dict[str, float]
    """Plans that fail, those with the same consequence too, and the seconds after which each was found."""
    tried: int
    left: int
    seconds: float
    broken: str = ""
    """Reason why the operator fails without faults."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return its exit code."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", choices=[[], *(each.name for each in CASES)], help="bugs, all by default")
    parser.add_argument("--kinds", help="kinds of faults, by default those by which the bug is known")
    parser.add_argument("--time", default="5m", help="longest time of a search")
    given = parser.parse_args(arguments)
    failed = False
    print(_line("BUG", "VERSION", "FOUND", "AFTER", "TRIED", "LEFT", "SECONDS", "AS EXPECTED"), flush=True)
    for case in CASES:
        if given.name and case.name not in given.name:
            continue
        for program, is_broken in ((case.before, True), (case.after, False)):
            outcome = search(case, program, given.kinds or case.kinds, given.time)
            unknown = outcome.found.keys() - case.further
            expected = not outcome.broken and (case.point in unknown if is_broken else not unknown)
            failed |= not expected
            after = f"{outcome.found[case.point]:.0f}" if case.point in outcome.found else "-"
            numbers = [len(outcome.found), after, outcome.tried, outcome.left, round(outcome.seconds)]
            print(_line(case.name, program.version, *map(str, numbers), "yes" if expected else "NO"))
            print("".join(f"    {each}\n" for each in (*outcome.found, outcome.broken) if each), end="", flush=True)
    return int(failed)


def _line(bug: str, version: str, *cells: str) -> str:
    *numbers, expected = cells
    return f"{bug:<12} {version:<15}{''.join(f'{each:>8}' for each in numbers)}  {expected}"


def search(case: Case, program: Program, kinds: str, time: str) -> Outcome:
    """Return what `steersman stress` finds; end the program if that fails.

    Raises subprocess.CalledProcessError if the operator cannot be built.
    """
    command = program.command()
    with tempfile.TemporaryDirectory() as temporary:
        manifests = Path(temporary) / "manifests"
        manifests.mkdir()
        for number, each in enumerate((*program.definitions(), *case.manifests)):
            (manifests / f"{number}.yaml").write_bytes(each.read_bytes())
        exist = ("--manifests", str(manifests)) if any(manifests.iterdir()) else ()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "steersman.cli", "stress", "--operator", command, "--test", case.test),
                *(*exist, *case.options, "--kinds", kinds, "--time", time, "-o", "json"),
                *("--save", str(Path(temporary) / "plans")),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if not done.stdout:
        sys.exit(f"{case.name} {program.version}: steersman stress ended with {done.returncode}:\n{done.stderr}")
    return outcome_of(json.loads(done.stdout))


def outcome_of(result: Any) -> Outcome:
    """Return the outcome in the JSON of a search."""
    findings = [each for group in result["findings"] for each in group]
    found = {" and ".join(map(_named, each["plan"]["faults"])): float(each["after"]) for each in findings}
    return Outcome(found, result["tried"], result["left"], result["seconds"], result["broken"])


def _named(fault: Any) -> str:
    return str(plan_of({"faults": [fault]}, "a result"))
