"""Ginkgo's reports, counted: how many tests of each interest group passed, and why others were left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.conformance.left_out import LeftOut, counted

CONFORMANCE: Final = "[Conformance]"


class Test(NamedTuple):
    """A test of a suite."""

    name: str
    state: str
    """Ginkgo's: `passed`, `skipped`, `failed`, `timedout`, `panicked`, `interrupted`."""

    @property
    def group(self) -> str:
        """The interest group that owns it."""
        return self.name.partition("]")[0].removeprefix("[")


def tests(report: Path) -> Iterator[Test]:
    """All tests that a report knows, run or not."""
    for suite in json.loads(report.read_bytes()):
        for each in suite["SpecReports"] or ():
            if each["LeafNodeType"] == "It":
                yield Test(" ".join((*(each["ContainerHierarchyTexts"] or ()), each["LeafNodeText"])), each["State"])


def table(report: Path, left_out: Sequence[LeftOut]) -> str:
    """A line for each interest group: how many tests ran, how many passed; then a line for each reason to leave out
    conformance tests, and the names of tests that did not pass."""
    if not report.exists():
        return "there is no report"
    found = list(tests(report))
    ran = [each for each in found if each.state != "skipped"]
    total, passed = Counter(each.group for each in ran), Counter(each.group for each in ran if each.state == "passed")
    lines = [f"{group}: {passed[group]} of {total[group]} passed" for group in sorted(total)]
    lines.append(f"all: {passed.total()} of {total.total()} passed")
    others = [each.name for each in found if each.state == "skipped" and CONFORMANCE in each.name]
    lines += [f"left out: {number}: {why}" for why, number in counted(left_out, others).most_common()]
    lines += [f"{each.state}: {each.name}" for each in ran if each.state != "passed"]
    return "\n".join(lines)
