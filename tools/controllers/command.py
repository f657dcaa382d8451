"""The command line: which servers, which scenarios, and what is printed of differences."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.controllers.scenarios import CONTROLLERS, SCENARIOS
from tools.controllers.world import Refused, World
from tools.differential.server import Client, Server

OURS: Final = f"{sys.executable} -m tools.controllers.ours --controllers={{controllers}}"


def main() -> int:
    """0 if all scenarios come to the same."""
    arguments = _arguments()
    chosen = {
        name: scenario
        for name, scenario in SCENARIOS.items()
        if not arguments.scenarios or any(name.startswith(each) for each in arguments.scenarios)
    }
    expected: dict[str, Any] = {}
    if arguments.reference:
        with _reference(arguments.reference, arguments.manager) as client:
            expected = _play(client, list(chosen))
        if arguments.record:
            for name, each in expected.items():
                (Path(arguments.record) / f"{name}.json").write_text(json.dumps(each, indent=1, sort_keys=True) + "\n")
            return 0
    else:
        for name in chosen:
            expected[name] = json.loads((Path(arguments.recorded) / f"{name}.json").read_text())
    with Server(OURS.format(controllers=",".join(CONTROLLERS))) as client:
        found = _play(client, list(chosen))
    return sum([_compare(name, expected[name], found[name]) for name in chosen]) > 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.controllers")
    parser.add_argument("--reference", help="starts the reference API server")
    parser.add_argument("--manager", help="starts kube-controller-manager")
    parser.add_argument("--record", help="the folder in which to keep what the reference makes of scenarios")
    parser.add_argument("--recorded", help="the folder with what it made of them")
    parser.add_argument("scenarios", nargs="*", help="beginnings of their names; all without any")
    return parser.parse_args()


@contextlib.contextmanager
def _reference(command: str, manager: str) -> Iterator[Client]:
    with Server(command) as client:
        kubeconfig = client.found.get("kubeconfig") or str(Path(client.found["ca"]).parent / "kubeconfig")
        folder = Path(client.found["ca"]).parent
        text = manager.format(kubeconfig=kubeconfig, controllers=",".join(CONTROLLERS), folder=folder)
        process = subprocess.Popen(shlex.split(text), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(5)  # it has no way to say that it works
            yield client
        finally:
            process.terminate()
            process.wait(30)


def _play(client: Client, names: list[str]) -> dict[str, Any]:
    out = {}
    for name in names:
        world = World(client, name.replace("_", "-"))
        try:
            SCENARIOS[name](world)
        except Refused as error:
            world.snapshots["refused"] = str(error)
        finally:
            world.close()
        out[name] = world.snapshots
        print(f"played {name}", file=sys.stderr, flush=True)
    return out


def _compare(name: str, expected: dict[str, Any], found: dict[str, Any]) -> bool:
    """Prints what differs, and says whether anything does."""
    differs = False
    for label in {**expected, **found}:
        before, after = expected.get(label), found.get(label)
        if before == after:
            continue
        differs = True
        lines = [json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (before, after)]
        print(f"=== {name}: {label}")
        reference, ours = lines
        print("\n".join(list(difflib.unified_diff(reference, ours, "reference", "ours", lineterm="", n=4))[2:]))
    if not differs:
        print(f"the same: {name}")
    return differs
