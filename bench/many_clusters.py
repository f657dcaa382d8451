#!/usr/bin/env python3
"""Memory and processor time of many environments in one process: start, rest, reset and stop of each.

    python -m bench.many_clusters [--count 100] [--rows server,controllers,cluster] [--idle 10]

Each row has a process of its own. The first environment, which imports the server's modules, is not among the figures. A
reset puts back five ConfigMaps, or with nodes a Deployment with five running pods. The output is a Markdown table; times
are CPU seconds of the process, and medians of one environment.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from steersman.testing import Environment

ROWS: Final[dict[str, dict[str, Any]]] = {
    "server": {"listen": True},
    "controllers": {"listen": True, "controllers": True},
    "cluster": {"listen": True, "nodes": 1},
}
HEADS: Final = ("environment", "start", "memory", "at rest, a second", "restore", "renew", "stop")
_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def memory() -> float:
    """Return the resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20


async def spent(work: Callable[[], Awaitable[object]]) -> float:
    """Return the processor time of some work in seconds."""
    began = time.process_time()
    await work()
    return time.process_time() - began


async def fill(environment: Environment, nodes: int) -> None:
    """Create objects, and wait until the pods among them run."""
    client = environment.client()
    if not nodes:
        for number in range(5):
            assert (await client.post(_MAPS, {"metadata": {"name": f"a{number}"}})).status == 201
        return
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 5, "selector": {"matchLabels": labels}, "template": template}
    assert (await client.post(_DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})).status == 201
    await environment.wait_for("deployments", "a", "condition=Available", timeout=600)
    await environment.settle(10)


async def measure(arguments: dict[str, Any], count: int, idle: float) -> dict[str, float]:
    """Return the figures of a row."""
    async with Environment(**arguments) as first:
        await fill(first, arguments.get("nodes", 0))
    before, environments, starts = memory(), [], []
    for _ in range(count):
        environments.append(Environment(**arguments))
        starts.append(await spent(environments[-1].start))
    each = (memory() - before) / count
    rest = await spent(lambda: asyncio.sleep(idle))
    restores, renewals, stops = [], [], []
    for environment in environments:
        snapshot = environment.snapshot()
        for times, reset in ((restores, environment.restore), (renewals, environment.renew)):
            await fill(environment, arguments.get("nodes", 0))
            began = time.process_time()
            await reset(snapshot)
            times.append(time.process_time() - began)
    for environment in environments:
        stops.append(await spent(environment.stop))
    return {
        "start": statistics.median(starts),
        "memory": each,
        "rest": rest / idle / count,
        "restore": statistics.median(restores),
        "renew": statistics.median(renewals),
        "stop": statistics.median(stops),
    }


def line(name: str, found: dict[str, float]) -> str:
    """Return a line of the table."""
    times = {key: f"{found[key] * 1000:.1f} ms" for key in ("start", "rest", "restore", "renew", "stop")}
    shown = (
        times["start"],
        f"{found['memory']:.1f} MiB",
        *(times[key] for key in ("rest", "restore", "renew", "stop")),
    )
    return f"| {' | '.join((name, *shown))} |"


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--idle", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(asyncio.run(measure(ROWS[options.row], options.count, options.idle))))
        return 0
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for name in options.rows.split(","):
        command = [sys.executable, "-m", "bench.many_clusters", "--row", name]
        sizes = ["--count", str(options.count), "--idle", str(options.idle)]
        done = subprocess.run([*command, *sizes], stdout=subprocess.PIPE, check=True)
        print(line(name, json.loads(done.stdout)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
