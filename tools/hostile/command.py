"""The command: starts the servers, plays the cases, reports."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase, translate
from pathlib import Path
from random import Random
from typing import Final

from . import custom, definitions, documents, fillers, floods, heads, objects, peers, policies, selectors
from .case import Case
from .measuring import Bounds, Measurer, Result
from .report import as_json, causes, table
from .server import AttackedServer

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = f"{sys.executable} {ROOT}/bench/serve --allow-privileged=true --debug-loop-watchdog=20ms"
KINDS: Final[dict[str, Callable[[str], Iterable[Case]]]] = {
    "lists": objects.lists,
    "texts": objects.texts,
    "unknown-users": objects.unknown_users,
    "documents": lambda _: documents.cases(),
    "definitions": lambda _: definitions.cases(),
    "custom": lambda _: custom.cases(),
    "policies": lambda _: policies.cases(),
    "webhooks": lambda _: peers.webhooks(),
    "aggregated": lambda _: peers.aggregated(),
    "selectors": lambda _: selectors.cases(),
    "headers": lambda _: heads.headers(),
    "query": lambda _: heads.query(),
    "paths": lambda _: heads.paths(),
    "tokens": lambda _: heads.tokens(),
    "fillers": lambda _: fillers.cases(),
    "floods": lambda _: floods.cases(),
}
"""Each takes the patterns of kinds of objects, and ignores them if it makes none."""
_UNITS: Final = {"B": 1, "KB": 1000, "MB": 1_000_000}
_EPILOG: Final = """
A case is named KIND/...; --only=PATTERN plays those whose name matches, e.g.
  --only='lists/v1.Pod/spec.containers[].ports/equal/create-json' or --only='*/spec.hostAliases/*'
where [] is any item of a list, {} any value of a map, and * the only sign with a meaning beside ?.

Columns: how many times over its bound the worst figure is; longest hold of the loop in processor time, by the server's
watchdog; longest wait of a parallel GET /livez/ping; the same of a GET of a user who has no part in it, or how many of
these were turned away; processor time of both servers (ms), their ratio; bytes sent; status codes
(reference's behind the slash); the case and the function that held the loop.

A run of ten minutes over a sample of everything, against the reference:
  python -m tools.hostile --reference 'bench/reference/reference up' --minutes 10 --json result.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a bound is broken."""
    options = _options(arguments)
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has enough, such as head, ends it
        for case in chosen(options):
            print(case.name)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the servers are ended, what was found is told
    cases = chosen(options)
    bounds = Bounds(options.held / 1000, options.ratio, options.floor / 1000, options.other / 1000)
    began, results, played = time.monotonic(), [], 0
    with ExitStack() as stack:
        crowd = any(case.crowd for case in cases)
        ours = stack.enter_context(AttackedServer(options.server, timeout=options.timeout, crowd=crowd))
        reference = None
        if options.reference:
            server = AttackedServer(options.reference, timeout=options.timeout, crowd=crowd)
            reference = stack.enter_context(server)
        measurer = Measurer(ours, reference, bounds, always=options.always)
        print(f"{len(cases)} cases", flush=True)
        try:
            for case in cases:
                if options.minutes and time.monotonic() - began > options.minutes * 60:
                    break
                played += 1
                if options.progress:
                    print(f"- {case.name}", flush=True)
                for result in measurer.play(case, options.sizes):
                    results.append(result)
                    _progress(result, options)
        except KeyboardInterrupt:
            pass  # what was found so far is worth telling
        series = ours.strange_series()
    _report(results, options)
    offending = {each.name for each in results if each.offends}
    print(
        f"{played} of {len(cases)} cases, {measurer.requests} requests, {len(offending)} cases over their bounds, "
        f"{ours.restarts} restarts, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    for each in series[: options.show]:
        print(f"metrics: {each}", flush=True)
    return 1 if offending or series else 0


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases to play, in their order: in turn of each kind, in each kind in turn of each group, else at random."""
    kinds: list[list[Case]] = []
    for kind in options.kinds.split(","):
        random = Random(f"{options.seed}/{kind}")
        wanted = re.compile("|".join(translate(each.replace("[", "[[]")) for each in options.only))
        if options.only and not any(fnmatchcase(kind, each.partition("/")[0]) for each in options.only):
            continue
        cases = [case for case in KINDS[kind](options.objects) if wanted.match(case.name)]
        groups: dict[str, list[Case]] = defaultdict(list)
        for case in cases:
            groups[case.group].append(case)
        for group in groups.values():
            random.shuffle(group)
        ordered = list(groups.values())
        random.shuffle(ordered)
        kinds.append(list(_in_turn(ordered))[: options.cases or None])
    return list(_in_turn(kinds))


def _in_turn(rows: list[list[Case]]) -> Iterator[Case]:
    for number in range(max(map(len, rows), default=0)):
        for row in rows:
            if number < len(row):
                yield row[number]


def _progress(result: Result, options: argparse.Namespace) -> None:
    if result.offends and options.progress:
        print("\n".join(list(table([result], 1))[1:]), flush=True)


def _report(results: list[Result], options: argparse.Namespace) -> None:
    print()
    for line in table(results, options.show):
        print(line)
    print("\nCauses:")
    for line in causes(results):
        print(line)
    if options.json:
        options.json.write_text(json.dumps([as_json(each) for each in results], indent=1) + "\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="hostile",
        description="Measure what the most expensive requests cost a server, and who has to wait.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--server", default=OURS, metavar="CMD", help=f"starts the server, with --debug-loop-watchdog (default: {OURS})"
    )
    parser.add_argument("--reference", metavar="CMD", help="starts the server whose processor time is the measure")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of cases (default: %(default)s)")
    parser.add_argument(
        "--objects", default="", metavar="KINDS", help="kinds of objects, e.g. Pod,apps/v1.* (default: all)"
    )
    parser.add_argument("--sizes", type=_sizes, default="30KB,300KB,3MB", help="growing (default: 30KB,300KB,3MB)")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="cases by name; may be repeated")
    parser.add_argument("--again", type=Path, metavar="FILE", help="only cases that offend in this result of --json")
    parser.add_argument("--cases", type=int, default=0, help="at most so many cases of each kind")
    parser.add_argument("--minutes", type=float, default=0, help="no new case after so long")
    parser.add_argument("--seed", type=int, default=1, help="what the order of cases is made from (default: 1)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds until a request is lost (default: 60)")
    parser.add_argument("--held", type=float, default=50, help="bound of a hold of the loop, ms (default: 50)")
    parser.add_argument("--ratio", type=float, default=10, help="bound of ours to the reference's time (default: 10)")
    parser.add_argument("--other", type=float, default=1000, help="bound of another user's wait, ms (default: 1000)")
    parser.add_argument("--floor", type=float, default=50, help="ms below which time is not compared (default: 50)")
    parser.add_argument("--always", action="store_true", help="ask the reference also what costs less than the floor")
    parser.add_argument("--show", type=int, default=60, help="offenders to show (default: 60)")
    parser.add_argument("--progress", action="store_true", help="tell each offender as it is found")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    parser.add_argument("--list", action="store_true", help="name the cases that would be played, and play none")
    options = parser.parse_args(arguments)
    unknown = set(options.kinds.split(",")) - KINDS.keys()
    if unknown:
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    if options.again:
        options.only += sorted({each["case"] for each in json.loads(options.again.read_text()) if each["offends"]})
        if not options.only:
            parser.error(f"nothing offends in {options.again}")
    return options


def _sizes(text: str) -> list[int]:
    sizes = []
    for each in text.split(","):
        number = each.strip().rstrip("KMB")
        try:
            sizes.append(int(float(number) * _UNITS[each.strip()[len(number) :] or "B"]))
        except (KeyError, ValueError):
            raise argparse.ArgumentTypeError(f"{each!r} is no size such as 300KB") from None
    return sizes
