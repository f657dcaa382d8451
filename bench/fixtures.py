"""Time that the pytest fixtures take for each test: until the test has its server, and after the test.

    python -m bench.fixtures [--runs 50] [bare] [controllers] [cluster] [fresh]

Servers are those of the fixtures `steersman`, `steersman_controllers` and `steersman_cluster`; `fresh` is a bare one
that no test had before (`@pytest.mark.steersman(fresh=True)`). Each test makes some objects and, where there are
controllers, a Deployment of three pods, so that there is something to take away. Milliseconds; CPU is that of the whole
process. The first of each kind, which is prepared once in a run, is told by itself.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any

from steersman.testing import Pool, ThreadedEnvironment

KINDS: dict[str, dict[str, Any]] = {
    "bare": {},
    "controllers": {"controllers": True},
    "cluster": {"controllers": True, "nodes": 1},
    "fresh": {},
}
CONTAINER = {"name": "web", "image": "nginx"}
DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}},
    },
}


def use(environment: ThreadedEnvironment, kind: str) -> None:
    """Do the work of a test."""
    with environment.client() as client:
        for number in range(5):
            body = {"metadata": {"name": f"colors-{number}"}, "data": {"a": "red"}}
            status, _ = client.json("POST", "/api/v1/namespaces/default/configmaps", body)
            assert status == 201
        if kind in ("controllers", "cluster"):
            assert client.json("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)[0] == 201
            of_all = "readyReplicas" if kind == "cluster" else "replicas"
            environment.wait_for("deployments", "web", lambda found: found["status"].get(of_all) == 3)


def measure(kind: str, pool: Pool, runs: int) -> None:
    rows = []
    for _ in range(runs + 1):
        server: AbstractContextManager[ThreadedEnvironment]
        server = pool.new() if kind == "fresh" else pool.borrowed(**KINDS[kind])
        wall, cpu = time.perf_counter(), time.process_time()
        environment = server.__enter__()
        before, before_cpu = time.perf_counter() - wall, time.process_time() - cpu
        use(environment, kind)
        wall, cpu = time.perf_counter(), time.process_time()
        server.__exit__(None, None, None)
        after, after_cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append((before, after, before_cpu + after_cpu))
    first, *others = rows
    totals = [before + after for before, after, _ in others]
    figures = (*(median(each) * 1e3 for each in zip(*others, strict=True)), median(totals) * 1e3, min(totals) * 1e3)
    print(
        f"{kind:12}{figures[0]:10.1f}{figures[1]:10.1f}{figures[3]:10.1f}{figures[4]:10.1f}{figures[2]:10.1f}", end=""
    )
    print(f"{sum(first[:2]) * 1e3:12.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="tests of each kind (default 50)")
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"of {', '.join(KINDS)} (default all)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        pool = Pool(lambda: Path(tempfile.mkdtemp(dir=root)))
        print(f"{'':12}{'before':>10}{'after':>10}{'both':>10}{'least':>10}{'CPU':>10}{'the first':>12}")
        try:
            for kind in arguments.kinds or KINDS:
                measure(kind, pool, arguments.runs)
        finally:
            pool.close()


if __name__ == "__main__":
    main()
