"""PriorityClasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.scheduling.priorityclasses import PRIORITY_CLASSES

GROUP, PLURAL = "scheduling.k8s.io", "priorityclasses"


async def test_the_system_has_its_own_classes(cluster: Callable[..., Any]) -> None:
    c = await cluster(PRIORITY_CLASSES)
    body = {"metadata": {"name": "system-node-critical"}, "value": 2000001000}
    made = await c.create(PLURAL, body, group=GROUP)
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    assert await c.faults(c.update(PLURAL, {**made, "value": 1}, group=GROUP)) == [
        "value: Forbidden: may not be changed in an update."
    ]


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("big", 1000000001, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
        ("system-mine", 1, "error: system-mine is not a known system priority class"),
        ("system-cluster-critical", 1, "error: value of system-cluster-critical PriorityClass must be 2000000000"),
    ],
)
async def test_high_priorities_are_reserved(cluster: Callable[..., Any], name: str, value: int, fault: str) -> None:
    c = await cluster(PRIORITY_CLASSES)
    (found,) = await c.faults(c.create(PLURAL, {"metadata": {"name": name}, "value": value}, group=GROUP))
    assert found.endswith(fault)
