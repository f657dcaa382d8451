"""DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.resource.devicetaintrules import DEVICE_TAINT_RULES

GROUP = "resource.k8s.io"
LONG_AGO = "2020-01-01T00:00:00Z"


def rule(taint: dict[str, Any], **selector: str) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": taint}}


async def test_invalid_rule_is_refused(cluster: Callable[..., Any]) -> None:
    c = await cluster(DEVICE_TAINT_RULES)
    body = rule({"key": "a", "value": "x y"}, driver="", pool="", device="A")
    faults = await c.faults(c.create("devicetaintrules", body, group=GROUP))
    assert [fault[:60] for fault in faults] == [
        "spec.deviceSelector.driver: Required value",
        "spec.deviceSelector.pool: Required value",
        'spec.deviceSelector.device: Invalid value: "A": a lowercase ',
        'spec.taint.value: Invalid value: "x y": a valid label must b',
        "spec.taint.effect: Required value",
    ]
    faults = await c.faults(c.create("devicetaintrules", rule({"key": "a", "effect": "X"}), group=GROUP))
    assert faults == ['spec.taint.effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"']


async def test_a_new_effect_begins_when_it_is_given(cluster: Callable[..., Any]) -> None:
    c = await cluster(DEVICE_TAINT_RULES)
    made = await c.create("devicetaintrules", rule({"key": "a", "effect": "None", "timeAdded": LONG_AGO}), group=GROUP)
    assert (made["metadata"]["generation"], made["spec"]["taint"]["timeAdded"]) == (1, LONG_AGO)
    same = {"key": "a", "value": "b", "effect": "None", "timeAdded": LONG_AGO}
    changed = await c.change("devicetaintrules", "r", group=GROUP, taint=same)
    assert (changed["metadata"]["generation"], changed["spec"]["taint"]["timeAdded"]) == (2, LONG_AGO)
    other = same | {"effect": "NoSchedule"}
    changed = await c.change("devicetaintrules", "r", group=GROUP, taint=other)
    assert changed["spec"]["taint"]["timeAdded"] > LONG_AGO
    other = same | {"effect": "NoExecute", "timeAdded": "2021-01-01T00:00:00Z"}
    changed = await c.change("devicetaintrules", "r", group=GROUP, taint=other)
    assert changed["spec"]["taint"]["timeAdded"] == "2021-01-01T00:00:00Z"


async def test_conditions_are_counted(cluster: Callable[..., Any]) -> None:
    c = await cluster(DEVICE_TAINT_RULES)
    made = await c.create("devicetaintrules", rule({"key": "a", "effect": "None"}), group=GROUP)
    condition = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": LONG_AGO}
    made["status"] = {"conditions": [condition | {"type": f"C{number}"} for number in range(9)]}
    update = c.update("devicetaintrules", made, group=GROUP, subresource="status")
    assert await c.faults(update) == ["status.conditions: Too many: 9: must have at most 8 items"]
