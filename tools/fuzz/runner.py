"""Runs a target over inputs for a while, and tells the first that breaks a rule of each sort."""

from __future__ import annotations

import hashlib
import re
import resource
import time
import traceback
from dataclasses import dataclass, field
from random import Random
from typing import Final

from steersman.machinery.large_work.nesting import raise_recursion_limit

from .mutation import Mutator
from .target import Target, Wrong

_VARYING: Final = re.compile(r"[0-9]+|\"[^\"]*\"|'[^']*'")
_MEMORY: Final = 64 << 10
"""KiB by which the process may grow with one input."""
_POOL: Final = 2000
_AGAIN: Final = 3
"""Times that an input that took long is tried again: others use the machine too."""


@dataclass(frozen=True)
class Finding:
    """An input that breaks a rule, and which."""

    target: str
    what: str
    data: bytes

    @property
    def file_name(self) -> str:
        return f"found-{hashlib.sha256(self.data).hexdigest()[:12]}"


@dataclass
class Run:
    """Progress of a target."""

    target: Target
    inputs: int = 0
    outcomes: set[str] = field(default_factory=set)
    findings: dict[str, Finding] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.target.name}: {self.inputs} inputs, {len(self.outcomes)} outcomes, {len(self.findings)} findings"


def fuzz(target: Target, seconds: float, seed: int) -> Run:
    """The corpus itself, and then for `seconds` what is made of it. An input with a new outcome joins the pool."""
    raise_recursion_limit()  # as a server has it
    run = Run(target)
    pool = target.corpus()
    for data in pool:
        judge(run, data)
    random = Random(seed)
    mutator = Mutator(random, target.words, target.most)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutator.mutated(random.choice(pool), pool)
        if judge(run, data) and len(pool) < _POOL:
            pool.append(data)
    return run


def judge(run: Run, data: bytes) -> bool:
    """Tries an input; whether its outcome is a new one."""
    target = run.target
    run.inputs += 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome, fault, spent = _tried(target, data)
    if not fault and spent > target.limit(data):
        spent = min(spent, *(_tried(target, data)[2] for _ in range(_AGAIN)))
        if spent > target.limit(data):
            outcome, fault = "slow", f"took {spent:.3f} s, may take {target.limit(data):.3f} s"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if not fault and grown > _MEMORY:
        outcome, fault = "large", f"took {grown} KiB of memory"
    if fault:
        run.findings.setdefault(outcome, Finding(target.name, fault, data))
    is_new = outcome not in run.outcomes
    run.outcomes.add(outcome)
    return is_new


def _tried(target: Target, data: bytes) -> tuple[str, str, float]:
    """Run one input. Return its kind, the fault if any, and the seconds of processor time."""
    began = time.process_time()
    try:
        found = target.run(data)
    except Wrong as error:
        return "wrong", str(error), 0.0
    except target.declared as error:
        return _sort_of(error), "", time.process_time() - began
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}"
        return where, "".join(traceback.format_exception(error)), 0.0
    return f"read {_VARYING.sub('#', str(found)[:60])}", "", time.process_time() - began


def _sort_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {_VARYING.sub('#', str(error)[:200])}"
