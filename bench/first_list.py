#!/usr/bin/env python3
"""Cost of the first protobuf list of 1,000 Pods, none of which has been served in that form.

    python -m bench.first_list                                  bench/serve
    python -m bench.first_list 'python bench/reference/reference up'

The command starts a server (see side_by_side.py). Prints processor milliseconds of its processes for the first list and
for later ones, medians over several namespaces; the clock of the processes ticks every 10 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import ssl
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.side_by_side import end, end_on_sigterm, start

NAMESPACES = 5
PODS = 1000
PROTOBUF = "application/vnd.kubernetes.protobuf"
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def pod(name: str) -> dict[str, Any]:
    """A Pod of two containers, some 3 KB when stored."""
    probe = {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5}
    web = {
        "name": "web",
        "image": "registry.example.com/shop/web:1.42.0",
        "args": ["--port=8080"],
        "readinessProbe": probe,
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "POD", "value": name}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    }
    agent = {"name": "agent", "image": "registry.example.com/shop/agent:0.9.1"}
    labels = {"app": "web", "pod-name": name}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [web, agent]}}


def cpu_ms(pids: list[int]) -> float:
    """User and system time of these processes and their children so far."""
    total = 0
    while pids:
        pid, *pids = pids
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
        pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return total * TICK_MS


def main() -> None:
    own = shlex.join([sys.executable, str(Path(__file__).resolve().parent / "serve")])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", default=own, help="starts the server (default: bench/serve)")
    options = parser.parse_args()
    end_on_sigterm()
    server, told = start(options.command)
    try:
        context = ssl.create_default_context(cafile=told["ca"])
        context.check_hostname = False

        def call(path: str, body: Any = None, accept: str = "application/json") -> bytes:
            headers = {"Authorization": f"Bearer {told['token']}", "Content-Type": "application/json", "Accept": accept}
            data = json.dumps(body).encode() if body is not None else None
            request = urllib.request.Request(told["url"] + path, data, headers)
            with urllib.request.urlopen(request, context=context) as answer:
                return bytes(answer.read())

        pids = list(told["pids"].values())
        first: list[float] = []
        later: list[float] = []
        for number in range(NAMESPACES):
            call("/api/v1/namespaces", {"metadata": {"name": f"first-{number}"}})
            path = f"/api/v1/namespaces/first-{number}/pods"
            for index in range(PODS):
                call(path, pod(f"pod-{index}"))
            time.sleep(1)
            for figures in (first, later, later):
                before = cpu_ms(pids)
                size = len(call(f"{path}?resourceVersion=0", accept=PROTOBUF))
                time.sleep(0.2)
                figures.append(cpu_ms(pids) - before)
        print(
            f"{PODS} Pods, {size} bytes: first {statistics.median(first):.0f} ms (all: {first}), "
            f"later {statistics.median(later):.0f} ms"
        )
    finally:
        end(server)


if __name__ == "__main__":
    main()
