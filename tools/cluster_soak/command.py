"""The rounds: work, kills, healing, checks."""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

from steersman.testing import ServerProcess
from tools.cluster_soak import __doc__ as about
from tools.cluster_soak.checks import wrong
from tools.cluster_soak.work import Work

PATIENCE: Final = 240.0
"""Seconds that a cluster has to come to rest: nodes that were out of reach are evicted from after some minutes."""
_GONE: Final = (OSError, http.client.HTTPException)


class Soak:
    """One run, on one data folder."""

    def __init__(self, folder: Path, seed: int, nodes: int, kill_every: float) -> None:
        self._server = ServerProcess(folder / "data", f"--nodes={nodes}", verb="up")
        self._work = Work(Random(seed), [f"node-{number}" for number in range(nodes)])
        self._random = Random(seed + 1)
        self._kill_every = kill_every
        self._kills = 0
        self._steps = 0

    def run(self, minutes: float, seconds_of_round: float) -> bool:
        """Run the rounds. Return True if the cluster was as requested at the end of each round."""
        self._server.start()
        try:
            until = time.monotonic() + minutes * 60
            number, fine = 0, True
            while fine and time.monotonic() < until:
                number += 1
                self._round(seconds_of_round)
                fine = self._settle(number)
            return fine
        finally:
            if self._server.running:
                self._server.stop()

    def _round(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        kill = time.monotonic() + self._random.uniform(0.5, 1.5) * self._kill_every
        client = self._server.client()
        while time.monotonic() < until:
            if time.monotonic() > kill:
                self._server.kill()
                self._kills += 1
                kill = time.monotonic() + self._random.uniform(0.5, 1.5) * self._kill_every
            try:
                if not self._server.running:
                    self._server.start()
                    client = self._server.client()
                self._work.step(client)
                self._steps += 1
            except _GONE as error:
                print(f"no answer: {error}", file=sys.stderr)
            time.sleep(0.05)
        client.close()

    def _settle(self, number: int) -> bool:
        """Heals the nodes; whether all becomes as it must be."""
        began = time.monotonic()
        found: list[str] = []
        with self._server.client() as client:
            self._work.heal(client)
            while time.monotonic() - began < PATIENCE:
                found = wrong(client, self._work.world)
                if not found:
                    break
                time.sleep(0.5)
        descriptors = len(list(Path(f"/proc/{self._server.pid}/fd").iterdir()))
        print(
            f"round {number}: {self._steps} steps, {self._kills} kills, {len(self._work.world.objects)} objects; "
            f"at rest after {time.monotonic() - began:.1f} s; {self._server.resident_bytes() >> 20} MiB, "
            f"{descriptors} descriptors",
            flush=True,
        )
        for each in found[:50]:
            print(f"  {each}", flush=True)
        return not found


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--round", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--kill-every", type=float, default=20, metavar="SECONDS")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="steersman-soak-") as folder:
        soak = Soak(Path(folder), options.seed, options.nodes, options.kill_every)
        fine = soak.run(options.minutes, options.round)
        if not fine:
            print((Path(folder) / "data.stderr").read_text()[-4000:], file=sys.stderr)
    sys.exit(0 if fine else 1)
