"""Ginkgo's reports, counted: how many tests of each interest group passed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Ran(NamedTuple):
    """A test that had its turn."""

    name: str
    state: str
    """Ginkgo's: `passed`, `failed`, `timedout`, `panicked`, `interrupted`."""
    seconds: float

    @property
    def group(self) -> str:
        """The interest group that owns it."""
        return self.name.partition("]")[0].removeprefix("[")


def ran(report: Path) -> Iterator[Ran]:
    """The tests of a report, without those that were left out."""
    for suite in json.loads(report.read_bytes()):
        for each in suite["SpecReports"] or ():
            if each["LeafNodeType"] == "It" and each["State"] not in ("skipped", "pending"):
                name = " ".join((*(each["ContainerHierarchyTexts"] or ()), each["LeafNodeText"]))
                yield Ran(name, each["State"], each["RunTime"] / 1e9)


def table(report: Path) -> str:
    """A line for each interest group: how many tests ran, how many passed; then the names of those that did not."""
    if not report.exists():
        return "there is no report"
    tests = list(ran(report))
    total, passed = (
        Counter(each.group for each in tests),
        Counter(each.group for each in tests if each.state == "passed"),
    )
    lines = [f"{group}: {passed[group]} of {total[group]} passed" for group in sorted(total)]
    lines.append(f"all: {passed.total()} of {total.total()} passed")
    lines += [f"{each.state}: {each.name}" for each in tests if each.state != "passed"]
    return "\n".join(lines)
