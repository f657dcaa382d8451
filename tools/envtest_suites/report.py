"""JSON reports of Ginkgo runs, and the comparison of two runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_RUNS_GINKGO: Final = re.compile(r"^=== RUN +(\S+)\nRunning Suite", re.MULTILINE)
_PLAIN: Final = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)", re.MULTILINE)
_GOOD: Final = frozenset(("passed", "skipped", "pending"))


@dataclass(frozen=True)
class Run:
    """One run: how many specs passed, what failed by name with the first line of why, and the seconds it took."""

    passed: int
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.failed:
            return f"{self.passed} passed"
        return f"{self.passed} passed, {len(self.failed)} failed"


def read(report: str, output: str = "") -> Run:
    """A run out of Ginkgo's report and, of tests that are not Ginkgo's, out of what `go test -v` writes.

    Raises ValueError for another document.
    """
    passed, failed, seconds = 0, {}, 0.0
    running_ginkgo = set(_RUNS_GINKGO.findall(output))
    for state, name, took in _PLAIN.findall(output):
        if name in running_ginkgo:
            continue
        seconds += 0 if "/" in name else float(took)
        if state == "FAIL":
            failed[name] = "its output tells why"
        elif state == "PASS":
            passed += 1
    for suite in json.loads(report):
        seconds += suite["RunTime"] / 1e9
        for spec in suite["SpecReports"] or ():
            if spec["State"] not in _GOOD:
                failed[_name(spec)] = _why(spec)
            elif spec["State"] == "passed" and spec["LeafNodeType"] == "It":
                passed += 1
        if not suite["SuiteSucceeded"] and not failed:
            failed["the suite"] = "; ".join(suite["SpecialSuiteFailureReasons"] or ["no reason is given"])
    return Run(passed, failed, seconds)


def _name(spec: dict[str, Any]) -> str:
    texts = [*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]
    return " ".join(text for text in texts if text) or spec["LeafNodeType"]


def _why(spec: dict[str, Any]) -> str:
    failure = spec.get("Failure") or {}
    lines = [line.strip() for line in str(failure.get("Message", "")).splitlines() if line.strip()]
    return " ".join(lines)[:300] or spec["State"]


def table(runs: Iterable[tuple[str, Sequence[Run]]], heads: Sequence[str]) -> str:
    """A row for each suite: its name and what each of the runs said."""
    rows = [("suite", *heads)]
    rows += [(name, *(f"{run}, {run.seconds:.1f} s" for run in found)) for name, found in runs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def differences(ours: Run, real: Run | None) -> dict[str, str]:
    """Return the specs that failed with our programs and not with the real ones."""
    return {name: why for name, why in ours.failed.items() if real is None or name not in real.failed}
