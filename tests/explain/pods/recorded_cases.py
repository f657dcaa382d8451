"""Cases that were recorded from kube-scheduler with `python -m tools.scheduler_comparison.recording`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from steersman.api.core.v1 import Pod
from steersman.client.resources import PODS
from steersman.explain.dump import load_dump
from steersman.explain.explainers import explain_object
from steersman.explain.finding import Explanation
from steersman.explain.world import World

FOLDER: Final = Path(__file__).with_name("recorded")
EXPECTED: Final[dict[str, dict[str, str]]] = json.loads((FOLDER / "expected.json").read_text())
"""Reason, message, event and nominated node by case."""


BEFORE_NODES: Final = frozenset({"claim-missing", "claim-unbound", "device-class-missing"})
"""Cases whose pod is rejected before any node is looked at."""
WITHOUT_WAYS: Final = BEFORE_NODES | {"claim-waits", "devices", "volume-zone"}
"""Cases in which no change of the pod, of nodes or of other pods helps."""


def world_of(case: str) -> World:
    """Return the objects of a case."""
    return load_dump(FOLDER / f"{case}.json")


def objects_of(case: str) -> list[dict[str, Any]]:
    """Return the objects of a case as plain data."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{case}.json").read_text())["items"]
    return found


async def pending_pod(world: World) -> Pod:
    """Return the pod that stays pending."""
    pod = await world.get(PODS, "new", "default")
    assert pod is not None
    return pod


async def explained(case: str) -> Explanation:
    """Return the explanation of the pending pod of a case."""
    world = world_of(case)
    return await explain_object(world, PODS, await pending_pod(world))
