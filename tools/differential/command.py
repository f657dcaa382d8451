"""The command: starts both servers, plays the cases, reports."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from . import apply_sequences, definitions, objects, patches, path_comparer, selectors, subresources
from .case import Case, Generator, Step, named
from .comparison import Normaliser, differences
from .server import Answer, Client, Server

NAMESPACE: Final = "differential"
CONFLICT: Final = 409
KINDS: Final[dict[str, Generator]] = {
    "apply": apply_sequences.cases,
    "json": patches.json_cases,
    "merge": patches.merge_cases,
    "strategic": patches.strategic_cases,
    "selectors": selectors.cases,
    "objects": objects.cases,
    "subresources": subresources.cases,
    "definitions": definitions.cases,
    "on-request": objects.cases_on_request,
}
_OPTIONAL: Final = ("on-request", "definitions")
"""Left out unless they are named: one needs servers with --runtime-config=api/all=true, the other servers that take
definitions."""
PATHS: Final = "paths"
"""A kind whose cases are played by a runner of its own; left out unless it is named."""


@dataclass
class Difference:
    """What was different in a case: its steps up to there, and a line for each place."""

    case: Case
    step: int
    lines: list[str]
    sent: Any = None
    """The body of the last step, if that was made of what the server had."""

    def report(self, title: str) -> str:
        shown = [f"== {title}: {self.case.title}"]
        shown += [f"   {number}. {step}" for number, step in enumerate(self.case.steps[: self.step + 1], 1)]
        if self.sent is not None:
            shown.append(f"      sent: {json.dumps(self.sent)}"[:4000])
        return "\n".join([*shown, *(f"      {line}" for line in self.lines[:20])])


@dataclass
class Comparer:
    """Plays cases against two servers; every play has a name of its own for its objects."""

    a: Client
    b: Client
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    _plays: int = 0
    steps: int = 0

    def prepare(self) -> None:
        """Makes the namespace, and what else all cases need."""
        for client in (self.a, self.b):
            made = client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            if made.code not in (201, 409):
                raise RuntimeError(f"no namespace could be made: {made}")

    def close(self) -> None:
        self._pool.shutdown()

    def play(self, case: Case) -> Difference | None:
        """Plays the steps until one is answered differently."""
        self._plays += 1
        name = f"case-{self._plays}"
        try:
            return self._play(case, name)
        finally:
            for step in case.cleanup:
                for client in (self.a, self.b):
                    _ask(client, step, name)

    def _play(self, case: Case, name: str) -> Difference | None:
        views = (Normaliser(), Normaliser())
        for number, step in enumerate(case.steps):
            self.steps += 1
            (one, sent), (other, _) = self._pool.map(
                lambda client, step=step: _ask(client, step, name), (self.a, self.b)
            )
            if not one.code:
                return None  # the server that is right has failed, and so says nothing about the other
            lines = list(differences(views[0].answer(one), views[1].answer(other)))
            if lines:
                return Difference(case, number, lines, sent if step.edit is not None else None)
        return None

    def shrink(self, found: Difference) -> Difference:
        """The same difference, or another, with as few steps as leaving out one after the other gets."""
        steps = found.case.steps[: found.step + 1]
        index = len(steps) - 2
        while index >= 0:
            fewer = [*steps[:index], *steps[index + 1 :]]
            again = self.play(replace(found.case, steps=fewer))
            if again is not None:
                found, steps = again, again.case.steps[: again.step + 1]
            index = min(index, len(steps) - 1) - 1
        return found


def _ask(client: Client, step: Step, name: str) -> tuple[Answer, Any]:
    """The answer to a step, and the body that was sent."""
    path = named(step.path, name, NAMESPACE)
    for _ in range(step.attempts):
        body: Any = step.body
        if step.edit is not None:
            body = step.edit(client.ask("GET", path.partition("?")[0]).body)
        if body is not None:
            body = named(body, name, NAMESPACE)
        answer = client.ask(step.method, path, body, step.headers)
        if answer.code != CONFLICT:
            break
    return answer, body


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="differential", description="Compare two API servers on random requests.")
    parser.add_argument("--a", required=True, metavar="CMD", help="starts the server that is right")
    parser.add_argument("--b", required=True, metavar="CMD", help="starts the server to compare with it")
    parser.add_argument(
        "--kinds",
        default=",".join(each for each in KINDS if each not in _OPTIONAL),
        help=f"kinds of cases, of {', '.join((*KINDS, PATHS))} (default: all but {', '.join(_OPTIONAL)} and {PATHS})",
    )
    parser.add_argument("--cases", type=int, default=200, help="cases of each kind (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="what the cases are made from (default: 1)")
    parser.add_argument("--case", type=int, help="play this case only, by its number")
    parser.add_argument("--show", type=int, default=5, help="differences to show of each kind (default: 5)")
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",")
    unknown = set(kinds) - {*KINDS, PATHS}
    if unknown:
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # the servers are ended on the way out
    with Server(options.a) as a, Server(options.b) as b:
        codes = [path_comparer.run(a, b, options)] if PATHS in kinds else []
        comparer = Comparer(a, b)
        comparer.prepare()
        try:
            return max(codes + [_run(comparer, kind, options) for kind in kinds if kind != PATHS])
        finally:
            comparer.close()


def _run(comparer: Comparer, kind: str, options: argparse.Namespace) -> int:
    began = time.monotonic()
    numbers = range(options.cases) if options.case is None else (options.case,)
    steps, different, once = comparer.steps, 0, 0
    for number in numbers:
        case = KINDS[kind](Random(f"{options.seed}/{kind}/{number}"))
        found = comparer.play(case)
        if found is None:
            continue
        if comparer.play(case) is None:
            # upstream looks at what it has cached first, and if that was old, warnings of the first look stay
            once += 1
            print(found.report(f"{kind} case {number} of seed {options.seed}, not so when played again"), flush=True)
            continue
        different += 1
        if different <= options.show:
            print(comparer.shrink(found).report(f"{kind} case {number} of seed {options.seed}"), flush=True)
    seconds = time.monotonic() - began
    print(f"{kind}: {len(numbers)} cases, {comparer.steps - steps} requests, {different} differ, {once} differed only "
          f"once, {seconds:.0f} s", flush=True)  # fmt: skip
    sys.stdout.flush()
    return 1 if different else 0
