"""RuntimeClasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.node.runtimeclasses import RUNTIME_CLASSES

GROUP, PLURAL = "node.k8s.io", "runtimeclasses"


async def test_a_handler_is_needed_and_stays(cluster: Callable[..., Any]) -> None:
    c = await cluster(RUNTIME_CLASSES)
    body = {"metadata": {"name": "r"}, "handler": ""}
    assert await c.faults(c.create(PLURAL, body, group=GROUP)) == ["handler: Required value"]
    made = await c.create(PLURAL, {**body, "handler": "h"}, group=GROUP)
    assert await c.faults(c.update(PLURAL, {**made, "handler": "i"}, group=GROUP)) == [
        'handler: Invalid value: "i": field is immutable'
    ]


async def test_overhead_and_tolerations_are_checked(cluster: Callable[..., Any]) -> None:
    c = await cluster(RUNTIME_CLASSES)
    toleration = {"key": "t", "operator": "Exists"}
    body = {
        "metadata": {"name": "r"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "-1"}},
        "scheduling": {"tolerations": [toleration, toleration]},
    }
    assert await c.faults(c.create(PLURAL, body, group=GROUP)) == [
        'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        'scheduling.tolerations[1]: Duplicate value: {"Key":"t","Operator":"Exists","Value":"","Effect":"",'
        '"TolerationSeconds":null}',
    ]
