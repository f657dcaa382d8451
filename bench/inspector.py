"""Times of the inspector's page in Chromium, and what an open page costs the server and the front.

    .venv/bin/python -m bench.inspector --nodes 1000 --pods 10000

Prints one JSON line: milliseconds to the first paint, to all nodes and to all rows; of a frame while rows are scrolled;
from the creation of a pod, and of an event, to its row on the screen; and by view, the share of a core that the server
and the front take while little happens (`quiet`), with that of the server before the page was opened. It needs node,
Chromium, and the packages of inspector/ (npm ci). Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steersman.testing import ServerProcess
from tests.e2e.inspector_page import FrontProcess, missing

NAMESPACE = "load"
WRITERS = 4
PATIENCE = 600.0
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def pod(number: int) -> Mapping[str, object]:
    """Return a small pod."""
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    return {"metadata": {"name": f"pod-{number:05}", "labels": {"app": f"app-{number % 10}"}}, "spec": spec}


def fill(server: ServerProcess, count: int) -> None:
    """Create pods, and wait until all of them run."""

    def write(numbers: Sequence[int]) -> None:
        with server.client(timeout=60.0) as client:
            for number in numbers:
                status, body = client.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod(number))
                assert status == 201, body

    with server.client(timeout=60.0) as client:
        client.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        with ThreadPoolExecutor(WRITERS) as writers:
            list(writers.map(write, [range(first, count, WRITERS) for first in range(WRITERS)]))
        waiting = f"/api/v1/namespaces/{NAMESPACE}/pods?fieldSelector=status.phase%21%3DRunning&limit=1"
        ending = time.monotonic() + PATIENCE
        while json.loads(client.request("GET", waiting)[1])["items"]:
            assert time.monotonic() < ending, "not all pods run"
            time.sleep(1.0)


class Meter:
    """Share of a core that processes take between `begin` and `end`."""

    def __init__(self, **pids: int) -> None:
        self._pids = pids
        self._before: dict[str, float] = {}
        self._began = 0.0

    def begin(self) -> None:
        """Start to measure."""
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        self._began = time.monotonic()

    def end(self) -> dict[str, float]:
        """Return the shares by process, in percent."""
        seconds = time.monotonic() - self._began
        return {
            name: round((cpu_seconds(pid) - self._before[name]) / seconds * 100, 2) for name, pid in self._pids.items()
        }


def main() -> None:
    """Fill a cluster, play the scenario, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=20, help="time for which a view is left open")
    options = parser.parse_args()
    if lack := missing():
        parser.error(lack)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ServerProcess(folder / "data", f"--nodes={options.nodes}", verb="up") as server:
            fill(server, options.pods)
            time.sleep(5.0)
            alone = Meter(server=server.pid)
            alone.begin()
            time.sleep(options.seconds)
            before = alone.end()
            with FrontProcess(server.kubeconfig, folder / "stderr") as front:
                meter = Meter(server=server.pid, front=front.pid)
                found = front.play(
                    "measure",
                    folder,
                    {"begin": meter.begin, "end": meter.end},
                    PATIENCE,
                    nodes=options.nodes,
                    pods=options.pods,
                    seconds=options.seconds,
                )
    found["quiet"]["no page"] = before
    print(json.dumps(found))


if __name__ == "__main__":
    main()
