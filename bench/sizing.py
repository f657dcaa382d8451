#!/usr/bin/env python3
"""Memory, disk and processor time of `steersman serve` on SQLite with N ConfigMaps and N Pods.

    python -m bench.sizing [--counts 0,1000,10000] [--idle 20]

Each count has a fresh data folder. The objects are created over HTTP, with as many connections as `--connections`, and
the server is then started again on the same folder, as the memory after a start is what a machine needs at least. The
output is a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.at_size.server import TOKEN, Server
from bench.first_list import pod

_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_PODS: Final = "/api/v1/namespaces/default/pods"
_HEADERS: Final = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
_CONFIG_MAP_BYTES: Final = 1024
_PADDING: Final = 900
"""Length of the annotation that makes a Pod as large as those of real clusters, 3.7 KB as JSON."""


def config_map(number: int) -> dict[str, Any]:
    """Return a ConfigMap with 1 KiB of data."""
    return {"metadata": {"name": f"map-{number:06}"}, "data": {"config": "x" * _CONFIG_MAP_BYTES}}


def padded_pod(number: int) -> dict[str, Any]:
    """Return a Pod of two containers that is 3.7 KB as JSON."""
    found = pod(f"pod-{number:06}")
    found["metadata"]["annotations"] = {"example.com/note": "x" * _PADDING}
    return found


def create(server: Server, path: str, make: Callable[[int], dict[str, Any]], number: int, connections: int) -> int:
    """Create `number` objects and return the bytes of the last one as the server returns it."""
    numbers: Iterator[int] = count()
    sizes: list[int] = []
    failures: list[str] = []

    def work() -> None:
        connection = HTTPSConnection("127.0.0.1", server.port, context=server.context())
        while not failures and (each := next(numbers)) < number:
            connection.request("POST", path, json.dumps(make(each)), _HEADERS)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 201:
                failures.append(body.decode())
            sizes.append(len(body))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(failures[0])
    return sizes[-1] if sizes else 0


def measure(folder: Path, number: int, idle: float, connections: int) -> list[str]:
    """Return the cells of the row for `number` objects of each kind."""
    server = Server(folder, None, [])
    server.start()
    try:
        before = server.cpu()
        create(server, _CONFIG_MAPS, config_map, number, connections)
        maps = server.cpu()
        size = create(server, _PODS, padded_pod, number, connections)
        pods = server.cpu()
        resident = server.resident()
    finally:
        server.stop()
    if size:
        print(f"a Pod has {size} bytes", flush=True)
    server = Server(folder, None, [])
    server.start()
    try:
        started = server.cpu()
        time.sleep(idle)
        used = server.cpu() - started
        _, listed = server.call(_PODS)
        stored = sum(path.stat().st_size for path in (folder / "data").glob("steersman.db*")) / (1 << 20)
        after = server.resident()
    finally:
        server.stop()
    creates = [f"{(maps - before) * 1000 / number:.1f}, {(pods - maps) * 1000 / number:.1f}"] if number else [""]
    return [
        f"{number:,}",
        f"{resident:.0f}",
        f"{after:.0f}",
        f"{stored:.0f}",
        f"{server.ready_seconds:.1f}",
        f"{started:.1f}",
        *creates,
        f"{used / idle * 100:.1f}",
        f"{listed * 1000:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default="0,1000,10000", help="objects of each kind, separated by commas")
    parser.add_argument("--idle", type=float, default=20, help="seconds for which an idle server is measured")
    parser.add_argument("--connections", type=int, default=4, help="connections that create objects")
    options = parser.parse_args()
    rows = []
    for each in options.counts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(Path(folder), int(each), options.idle, options.connections))
    heads = (
        "of each kind",
        "MiB after creating",
        "MiB after a start",
        "MiB of disk",
        "start, s",
        "start, CPU s",
        "CPU ms for a create: ConfigMap, Pod",
        "idle, % of a core",
        "list of all Pods, ms",
    )
    for row in (heads, ["--:"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
