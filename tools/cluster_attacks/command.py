"""The command."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tools.cluster_attacks import __doc__ as about
from tools.cluster_attacks.attacks import ATTACKS, NODES
from tools.cluster_attacks.cluster import AttackedCluster, Costs, told

_LONGEST: Final = 180.0
"""Seconds after an attack in which its consequences are watched."""


def main() -> None:
    """Plays the attacks that are named, or all."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", choices=[[], *ATTACKS])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--held", type=float, default=50, metavar="MILLISECONDS")
    parser.add_argument("--running", type=float, default=5, metavar="SECONDS")
    parser.add_argument("--verbose", action="store_true", help="tell of the longest holds")
    options = parser.parse_args()
    if options.list:
        for name, attack in ATTACKS.items():
            print(f"{name}: {attack.__doc__}")
        return
    broken = []
    for name in options.attacks or ATTACKS:
        costs = _played(name, NODES.get(name, options.nodes), verbose=options.verbose)
        if _is_broken(costs, options.held / 1000, options.running):
            broken.append(name)
    print(f"over the bounds: {', '.join(broken)}" if broken else "all within the bounds")
    sys.exit(1 if broken else 0)


def _played(name: str, nodes: int, *, verbose: bool) -> Costs:
    with (
        tempfile.TemporaryDirectory(prefix="steersman-attacks-") as folder,
        AttackedCluster(Path(folder), nodes) as cluster,
    ):
        began = time.monotonic()
        ATTACKS[name](cluster)
        made = time.monotonic() - began
        while not cluster.is_idle(3) and time.monotonic() - began < made + _LONGEST:
            pass
        costs = cluster.costs()
        if verbose:
            print("\n".join(costs.longest))
        print(f"{name} ({made:.1f} s, idle after {time.monotonic() - began:.1f} s): {told(costs)}", flush=True)
        return costs


def _is_broken(costs: Costs, held: float, running: float) -> bool:
    return any(each > held for each, _ in costs.holds) or any(each > running for each in costs.running)
