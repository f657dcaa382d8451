"""Answers of kube-apiserver to cases, recorded so that they are compared without it.

python -m tools.differential.recording --a COMMAND --kind queries --cases 150 FILE
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from .case import NAMESPACE_OF_CASES, Case
from .command import KINDS, NOTHING, ask
from .comparison import Normaliser
from .server import Client, Server


def case(kind: str, number: int) -> Case:
    """The case of a number, always the same."""
    return KINDS[kind](Random(f"recorded/{kind}/{number}"))


def prepare(client: Client) -> None:
    """Makes the namespace that cases are played in. Raises RuntimeError."""
    made = client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE_OF_CASES}})
    if made.code != 201:
        raise RuntimeError(f"no namespace could be made: {made}")


def answers(client: Client, kind: str, number: int, pause: float = 0.0) -> Iterator[str]:
    """One line for each step of a case, `pause` seconds apart: the request, the code, a summary of the body."""
    played, name, view, known = case(kind, number), f"recorded-{number}", Normaliser(), NOTHING
    for step in played.steps:
        answer, _ = ask(client, step, name, known)
        known = known.or_else(answer)
        seen = view.answer(step.seen(answer) if step.seen else answer)
        warned = f" warned {seen['warnings']}" if "warnings" in seen else ""
        time.sleep(pause)
        yield f"{step.method} {step.path}: {seen['code']} {_summary(seen['body'])}{warned}"
    for step in played.cleanup:
        ask(client, step, name)


def _summary(body: Any) -> str:
    """Kind and message of a Status, the objects of anything else: version, fields of the deletion, labels."""
    if isinstance(body, list):
        return " ".join(f"{each.get('type')}({_summary(each.get('object'))})" for each in body)
    if not isinstance(body, dict):
        return json.dumps(body)
    if body.get("kind") == "Status":
        return f"{body.get('status')} {body.get('reason', '')} {body.get('message', '')}".strip()
    within = body.get("items") if "items" in body else [each.get("object") for each in body.get("rows") or ()]
    inner = "".join(f" [{_summary(each)}]" for each in within or ())
    metadata = body.get("metadata") or {}
    told = {name: metadata[name] for name in _TOLD if name in metadata}
    return f"{body.get('kind', '')} {json.dumps(told)}{inner}"


_TOLD = ("name", "resourceVersion", "uid", "labels", "annotations", "finalizers", "deletionGracePeriodSeconds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Records the answers of a server."""
    parser = argparse.ArgumentParser(prog="recording", description="Record a server's answers to random requests.")
    parser.add_argument("--a", required=True, metavar="CMD", help="starts the server that is right")
    parser.add_argument("--kind", required=True, choices=KINDS, help="the kind of cases")
    parser.add_argument("--cases", type=int, default=150, help="how many (default: 150)")
    parser.add_argument("file", type=Path, help="where the answers go")
    options = parser.parse_args(arguments)
    pause = 0.05  # its caches come after its writes
    with Server(options.a) as client:
        prepare(client)
        recorded = [list(answers(client, options.kind, number, pause)) for number in range(options.cases)]
    options.file.write_text(json.dumps(recorded, indent=0, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
