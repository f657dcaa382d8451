"""Loops yield by `work.yielding`: each `asyncio.sleep(0)` elsewhere has a reason, which stands here."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final[dict[str, int]] = {
    "admission_plugins/owner_references_permission_enforcement.py": 1,
    "authorization/rbac.py": 1,
    "cli/up/shown.py": 1,
    "client/work_queue.py": 1,
    "cluster/cluster.py": 1,
    "controllers/autoscaling/evaluation.py": 2,
    "controllers/autoscaling/metrics.py": 1,
    "controllers/daemon_set/controller.py": 3,
    "controllers/services/mirroring.py": 1,
    "controllers/services/pods_of_services.py": 1,
    "controllers/services/service_cidrs.py": 1,
    "controllers/volumes/binder/controller.py": 1,
    "controlplane/stored_versions/rewriting.py": 1,
    "controlplane/workers/sums.py": 2,
    "controlplane/workers/worker.py": 1,
    "net/connection.py": 1,
    "nodes/stages/player.py": 1,
    "registry/core/services/cluster_ips.py": 1,
    "registry/core/services/ip_repair.py": 1,
    "scheduler/fit/rankings.py": 2,
    "server/basic_paths.py": 1,
    "simulated_metrics/resource_metrics.py": 1,
    "storage/cache/cacher.py": 3,
    "storage/memory.py": 1,
    "testing/clock.py": 1,
}


def yields_by_hand(source: str) -> int:
    """Return how often a module awaits `asyncio.sleep(0)`."""
    return sum(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("asyncio.sleep", "sleep")
        and [ast.unparse(each) for each in node.args] == ["0"]
        for node in ast.walk(ast.parse(source))
    )


def test_loops_yield_by_the_one_mechanism() -> None:
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "sleep(0)" in source and (count := yields_by_hand(source)):
            found[str(path.relative_to(SOURCE))] = count
    assert dict(found) == ALLOWED
