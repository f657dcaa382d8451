"""Fast tests that `make test` leaves out because they take longer than most.

`.ci/longer-tests.txt` lists them by function, with all its parameters. A test that is not in the list is run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests import ROOT
from tests.durations import file_of, function_of

LIST: Final = ROOT / ".ci" / "longer-tests.txt"
BOUND: Final = 0.08
"""Seconds of a function of tests, with all its parameters, above which it is in the list."""
_INERTIA: Final = 1.5
"""Factor by which the seconds of a listed function count more, so that those near the bound do not come and go."""
_MOST_OF_A_FILE: Final = 0.3
"""Seconds of a function that stays out of the list because it is the quickest of its file."""
_HEAD: Final = """\
# Tests that `make test` leaves out and `make test TESTS=tests` runs, as CI does: those above the bound of
# tests/longer.py. The quickest function of a file is listed only if it takes long. Written on an idle machine by
#     make test TESTS=tests JOBS=2 RUN="--record .ci/durations.json --record-longer .ci/longer-tests.txt"
"""


def read(file: Path = LIST) -> frozenset[str]:
    """Return the functions in the list; none if there is no list."""
    if not file.exists():
        return frozenset()
    return frozenset(line for line in file.read_text().splitlines() if line and not line.startswith("#"))


def write(functions: Iterable[str], file: Path) -> None:
    """Write a list."""
    file.write_text(_HEAD + "".join(f"{each}\n" for each in sorted(functions)))


def updated(known: frozenset[str], seconds: Mapping[str, float], root: Path = ROOT) -> frozenset[str]:
    """Return the functions that take longer than the bound, by the measured `seconds` of each.

    The quickest function of each file is left out, unless even that takes long. Functions that were not measured
    stay as they are `known`, as long as their file has their name.
    """
    counted = {name: each * (_INERTIA if name in known else 1) for name, each in seconds.items()}
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(counted):
        by_file[file_of(name)].append(name)
    quickest = {min(names, key=lambda name: counted[name]) for names in by_file.values()}
    kept = {name for name in quickest if counted[name] <= _MOST_OF_A_FILE}
    found = {name for name, each in counted.items() if each > BOUND} - kept
    return frozenset(found | {name for name in known - counted.keys() if _is_there(name, root)})


def _is_there(name: str, root: Path) -> bool:
    """Return True if the file of a function has its name, or that of its class."""
    file, _, inside = name.partition("::")
    return (root / file).exists() and inside.partition("::")[0] in (root / file).read_text()


def leave_out(items: list[pytest.Item], functions: frozenset[str]) -> list[pytest.Item]:
    """Remove the tests of some functions from a list, and return these tests."""
    left_out = [item for item in items if function_of(item.nodeid) in functions]
    items[:] = [item for item in items if function_of(item.nodeid) not in functions]
    return left_out
