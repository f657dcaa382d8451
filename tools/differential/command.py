"""The command: starts both servers, plays the cases, reports."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final, NamedTuple

from . import (
    apply_sequences,
    custom,
    custom_changes,
    definitions,
    fairness,
    header_fields,
    objects,
    patches,
    path_comparer,
    policies,
    queries,
    selectors,
    serving,
    subresources,
    webhooks,
)
from .authorization import cases as authorization_cases
from .authorization import policy_file
from .case import NAMESPACE_OF_CASES, RECEIVED, SINCE, TOKEN, UID, Case, Generator, Step, named
from .comparison import Normaliser, differences
from .fairness import loads
from .server import Answer, Client, Headers, Server

NAMESPACE: Final = NAMESPACE_OF_CASES
POLICIES: Final = "@POLICIES@"
"""Stands, in the commands, for the file of policies that cases of authorization are about."""
_UNREADABLE: Final = "request to convert CR from an invalid group/version"
"""Said of objects that are stored in a version that their definition does not have any more."""
CONFLICT: Final = 409
_TOO_MANY: Final = 429
_PATIENCE: Final = 10.0
"""Seconds that a step waits until what it asks for is so."""
_BETWEEN: Final = 0.05
KINDS: Final[dict[str, Generator]] = {
    "apply": apply_sequences.cases,
    "json": patches.json_cases,
    "merge": patches.merge_cases,
    "strategic": patches.strategic_cases,
    "selectors": selectors.cases,
    "queries": queries.cases,
    "objects": objects.cases,
    "subresources": subresources.cases,
    "definitions": definitions.cases,
    "custom": custom.cases,
    "custom-changes": custom_changes.cases,
    "webhooks": webhooks.cases,
    "policies": policies.cases,
    "authorization": authorization_cases,
    "fairness": fairness.cases,
    "fairness-objects": fairness.validation,
    "on-request": objects.cases_on_request,
}
_OPTIONAL: Final = (
    "on-request",
    "definitions",
    "custom",
    "custom-changes",
    "webhooks",
    "policies",
    "authorization",
    "fairness",
    "fairness-objects",
)
"""Left out unless they are named: one needs servers with --runtime-config=api/all=true, the others servers that take
definitions, reach webhooks on this machine, or judge by a file of policies; policies of admission take a while, and
cases of fairness configure the whole server."""
_PREPARED: Final[dict[str, Callable[[Sequence[Client], int], Generator]]] = {
    "custom": serving.custom_cases,
    "webhooks": serving.webhook_cases,
    "policies": serving.policy_cases,
    "authorization": serving.authorization_cases,
    "fairness": serving.fairness_cases,
}
"""Kinds of cases that need prepared objects: the function that prepares both servers for a seed."""
RUNNERS: Final[dict[str, Callable[[Client, Client, argparse.Namespace], int]]] = {
    "paths": path_comparer.run,
    "header-fields": header_fields.run,
    "fairness-loads": loads.run,
    "fairness-borrowing": loads.run_borrowing,
}
"""Kinds whose cases are played by runners of their own; left out unless they are named."""


@dataclass
class Difference:
    """A difference in a case: the steps up to it, and a line for each differing place."""

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
    plays: Iterator[int] = field(default_factory=lambda: count(1))
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    steps: int = 0

    def another(self) -> Comparer:
        """One that asks the same servers over connections of its own."""
        return Comparer(self.a.another(), self.b.another(), self.plays)

    def prepare(self) -> None:
        """Makes the namespace, and what else all cases need."""
        for client in (self.a, self.b):
            made = client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            if made.code not in (201, 409):
                raise RuntimeError(f"no namespace could be made: {made}")

    def close(self) -> None:
        self._pool.shutdown()
        self.a.close()
        self.b.close()

    def play(self, case: Case) -> Difference | None:
        """Plays the steps until one is answered differently."""
        name = f"case-{next(self.plays)}"
        try:
            return self._play(case, name)
        finally:
            for step in case.cleanup:
                for client in (self.a, self.b):
                    ask(client, step, name)

    def _play(self, case: Case, name: str) -> Difference | None:
        views = (Normaliser(), Normaliser())
        first = [NOTHING, NOTHING]
        tokens = ["", ""]
        for number, step in enumerate(case.steps):
            self.steps += 1
            (one, sent), (other, _) = self._pool.map(
                lambda client, known, token, step=step: ask(client, step, name, known, token),
                (self.a, self.b),
                first,
                tokens,
            )
            tokens = [_token_of(answer) or token for token, answer in zip(tokens, (one, other), strict=True)]
            first = [known.or_else(answer) for known, answer in zip(first, (one, other), strict=True)]
            if not one.code:
                return None  # the server that is right has failed, and so says nothing about the other
            if isinstance(one.body, dict) and _UNREADABLE in str(one.body.get("message")):
                return None  # it cannot read what the other still can
            time.sleep(step.pause)
            seen = [
                view.answer(step.seen(answer) if step.seen else answer, conditions=step.conditions)
                for view, answer in zip(views, (one, other), strict=True)
            ]
            lines = list(differences(seen[0], seen[1]))
            if lines:
                return Difference(case, number, lines, sent if step.edit is not None else None)
        return None

    def shrink(self, found: Difference) -> Difference:
        """Return this difference, or another one, with as few steps as leaving out single steps leads to."""
        steps = found.case.steps[: found.step + 1]
        index = len(steps) - 2
        while index >= 0:
            fewer = [*steps[:index], *steps[index + 1 :]]
            again = self.play(replace(found.case, steps=fewer))
            if again is not None:
                found, steps = again, again.case.steps[: again.step + 1]
            index = min(index, len(steps) - 1) - 1
        return found


class _First(NamedTuple):
    """The first resourceVersion and the first uid that a server has answered in a case, "" before it has."""

    version: str = ""
    uid: str = ""

    def or_else(self, answer: Answer) -> _First:
        """Return this answer with missing parts taken from another answer."""
        if self.version and self.uid:
            return self
        metadata = answer.body.get("metadata") if isinstance(answer.body, dict) else None
        known = metadata if isinstance(metadata, dict) else {}
        version, uid = known.get("resourceVersion"), known.get("uid")
        return _First(self.version or _text(version), self.uid or _text(uid))


def _text(found: Any) -> str:
    return found if isinstance(found, str) else ""


NOTHING: Final = _First()


def _token_of(answer: Answer) -> str:
    """The token that was issued, "" if none was."""
    status = answer.body.get("status") if isinstance(answer.body, dict) else None
    found = status.get("token") if isinstance(status, dict) else None
    return found if isinstance(found, str) else ""


def _fields(step: Step, name: str, token: str) -> Headers:
    """The head of a step with the names put in."""

    def put(text: str) -> str:
        return str(named(text, name, NAMESPACE)).replace(TOKEN, token)

    return {
        key: tuple(map(put, value)) if isinstance(value, tuple) else value and put(value)
        for key, value in step.headers.items()
    }


def ask(client: Client, step: Step, name: str, known: _First = NOTHING, token: str = "") -> tuple[Answer, Any]:
    """The answer to a step, and the body that was sent."""
    path = named(step.path, name, NAMESPACE).replace(SINCE, known.version).replace(UID, known.uid)
    headers = _fields(step, name, token)
    if step.method == RECEIVED:
        return client.received(path), None
    if step.until is not None:
        end = time.monotonic() + _PATIENCE
        while not step.until(client.ask(step.method, path, headers=headers).body) and time.monotonic() < end:
            time.sleep(_BETWEEN)
    attempts = step.attempts
    end = time.monotonic() + _PATIENCE
    while attempts:
        body: Any = step.body
        if step.edit is not None:
            body = step.edit(client.ask("GET", path.partition("?")[0]).body)
        if body is not None:
            body = client.placed(named(body, name, NAMESPACE))
        answer = client.ask(step.method, path, body, headers)
        if answer.code == _TOO_MANY and time.monotonic() < end:
            time.sleep(_BETWEEN)  # what is served has just changed
            continue
        attempts -= 1
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
        help=f"kinds of cases, of {', '.join((*KINDS, *RUNNERS))} "
        f"(default: all but {', '.join((*_OPTIONAL, *RUNNERS))})",
    )
    parser.add_argument("--cases", type=int, default=200, help="cases of each kind (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="what the cases are made from (default: 1)")
    parser.add_argument("--case", type=int, help="play this case only, by its number")
    parser.add_argument("--jobs", type=int, default=1, help="cases that are played at the same time (default: 1)")
    parser.add_argument("--show", type=int, default=5, help="differences to show of each kind (default: 5)")
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",")
    unknown = set(kinds) - {*KINDS, *RUNNERS}
    if unknown:
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # the servers are ended on the way out
    with ExitStack() as stack:
        a, b = (
            stack.enter_context(Server(_with_policies(each, options.seed, stack))) for each in (options.a, options.b)
        )
        codes = [RUNNERS[kind](a, b, options) for kind in kinds if kind in RUNNERS]
        comparer = Comparer(a, b)
        comparer.prepare()
        try:
            return max(codes + [run_kind(comparer, kind, options) for kind in kinds if kind not in RUNNERS])
        finally:
            comparer.close()


def _with_policies(command: str, seed: int, stack: ExitStack) -> str:
    """The command with the file of policies, if it names one, which is there until the stack ends."""
    if POLICIES not in command:
        return command
    path = Path(stack.enter_context(TemporaryDirectory())) / "policies.jsonl"
    path.write_text(policy_file(seed))
    return command.replace(POLICIES, str(path))


@dataclass
class _Tally:
    """Results of one kind of cases."""

    kind: str
    options: argparse.Namespace
    different: int = 0
    once: int = 0
    _lock: Lock = field(default_factory=Lock)

    def try_case(self, comparer: Comparer, number: int, generator: Generator) -> None:
        """Plays a case, again if there is a difference, and prints what stays."""
        case = generator(Random(f"{self.options.seed}/{self.kind}/{number}"))
        found = comparer.play(case)
        if found is None:
            return
        title = f"{self.kind} case {number} of seed {self.options.seed}"
        if comparer.play(case) is None:
            # upstream looks at what it has cached first, and if that was old, warnings of the first look stay
            with self._lock:
                self.once += 1
                print(found.report(f"{title}, not so when played again"), flush=True)
            return
        with self._lock:
            self.different += 1
            is_shown = self.different <= self.options.show
        if is_shown:
            smallest = (found if case.is_slow else comparer.shrink(found)).report(title)
            with self._lock:
                print(smallest, flush=True)


def run_kind(comparer: Comparer, kind: str, options: argparse.Namespace) -> int:
    prepare = _PREPARED.get(kind)
    generator = KINDS[kind] if prepare is None else prepare((comparer.a, comparer.b), options.seed)
    began = time.monotonic()
    numbers = range(options.cases) if options.case is None else (options.case,)
    tally = _Tally(kind, options)
    comparers = [comparer.another() for _ in range(options.jobs)]

    def try_cases(job: int) -> None:
        for number in numbers[job :: options.jobs]:
            tally.try_case(comparers[job], number, generator)

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(try_cases, range(options.jobs)))
    finally:
        for each in comparers:
            each.close()
    steps, seconds = sum(each.steps for each in comparers), time.monotonic() - began
    print(
        f"{kind}: {len(numbers)} cases, {steps} requests, {tally.different} differ, {tally.once} differed only once, "
        f"{seconds:.0f} s",
        flush=True,
    )
    return 1 if tally.different else 0
