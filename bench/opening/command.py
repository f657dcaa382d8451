"""The command: makes the dump, opens it, and compares imports of the opened cluster."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final

import bench.opening
from bench.opening.dump import Maker, write_dump
from bench.opening.imports import comparable, different
from steersman.testing import ServerProcess

_PATIENCE: Final = 600.0
"""Seconds in which the cluster must be ready, and then at rest."""
_REST: Final = 1.0
"""Seconds without a write, after which the cluster counts as at rest."""
_WRITES: Final = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_HEARTBEATS: Final = "leases"
"""Resource that is written for ever. Nodes report their statuses in the ten seconds after the start, then rarely."""


class Opened:
    """A cluster that begins with a dump, from `with` to its end."""

    def __init__(self, dump: Path, folder: Path) -> None:
        self._server = ServerProcess(folder, f"--from={dump}", verb="up")
        self.figures: dict[str, float] = {}
        """Seconds and CPU seconds of the start, and memory after it."""

    def __enter__(self) -> Opened:
        self._server.launch()
        began = time.monotonic()
        self._server.wait_ready(_PATIENCE)
        self._measure("ready", time.monotonic() - began)
        self.figures["written pods"] = self._rest()
        self._measure("at rest", time.monotonic() - began - _REST)
        self.figures["MiB"] = self._server.resident_bytes() >> 20
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.stop()
        self._server.kill()

    def _measure(self, name: str, seconds: float) -> None:
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        self.figures[f"{name}: seconds"] = round(seconds, 1)
        self.figures[f"{name}: CPU seconds"] = sum(map(int, fields[11:15])) / 100  # with its children

    def _rest(self) -> int:
        """Wait until nothing is written any more but leases. Return the number of requests that wrote pods."""
        with self._server.client(timeout=60.0) as client:
            seen: Counter[str] = Counter()
            end = time.monotonic() + _PATIENCE
            while time.monotonic() < end:
                _, text = client.request("GET", "/metrics")
                written = _writes(text.decode())
                if written == seen:
                    return written["pods"]
                seen = written
                time.sleep(_REST)
        raise SystemExit("the cluster does not come to rest")

    def import_into(self, file: Path) -> None:
        """Import the cluster into a file, with the values of Secrets."""
        command = [sys.executable, "-m", "steersman.cli", "import", f"--output={file}", "--include-secrets"]
        subprocess.run([*command, f"--kubeconfig={self._server.kubeconfig}"], check=True, stdout=subprocess.DEVNULL)


def _writes(metrics: str) -> Counter[str]:
    """Return the number of requests that wrote, by resource, without heartbeats."""
    found: Counter[str] = Counter()
    for line in metrics.splitlines():
        if line.startswith("apiserver_request_total{") and any(f'verb="{each}"' in line for each in _WRITES):
            resource = line.partition('resource="')[2].partition('"')[0]
            if resource != _HEARTBEATS:
                found[resource] += int(float(line.rpartition(" ")[2]))
    return found


def main() -> int:
    """Print the figures of each round. Return 1 if imports differ."""
    parser = argparse.ArgumentParser(
        description=bench.opening.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--equal", action="store_true", help="import, open and import again, and compare")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steersman-opening-") as root:
        dump = Path(root) / "dump.json"
        count = write_dump(dump, Maker(options.seed, options.nodes, options.pods).objects())
        print(json.dumps({"objects": count, "MiB": dump.stat().st_size >> 20}), flush=True)
        for number in range(options.rounds):
            with Opened(dump, Path(root) / f"round-{number}") as opened:
                print(json.dumps(opened.figures), flush=True)
        return _compare_imports(dump, Path(root)) if options.equal else 0


def _compare_imports(dump: Path, folder: Path) -> int:
    """Import the opened dump, open that, and import it again. Return 1 if the imports differ."""
    files = [folder / "first.json", folder / "second.json"]
    for source, file in zip([dump, files[0]], files, strict=True):
        with Opened(source, file.with_suffix("")) as opened:
            print(json.dumps(opened.figures), flush=True)
            opened.import_into(file)
    one, other = map(comparable, files)
    found = different(one, other)
    print(json.dumps({"imported": len(one), "different": len(found), "first": [list(each) for each in found[:10]]}))
    return 1 if found else 0
