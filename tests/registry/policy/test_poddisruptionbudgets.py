"""PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS

GROUP, PLURAL = "policy", "poddisruptionbudgets"


def budget(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec}}


async def test_a_budget_is_of_one_kind_only(cluster: Callable[..., Any]) -> None:
    c = await cluster(POD_DISRUPTION_BUDGETS)
    assert await c.faults(c.create(PLURAL, budget(minAvailable=1, maxUnavailable="101%"), group=GROUP)) == [
        'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"a"}},"MaxUnavailable":"101%",'
        '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set',
        'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ]


async def test_status_is_written_apart_and_checked(cluster: Callable[..., Any]) -> None:
    c = await cluster(POD_DISRUPTION_BUDGETS)
    body = await c.create(PLURAL, budget(minAvailable=1), group=GROUP)
    body["spec"]["minAvailable"] = 2
    body["status"] |= {"disruptionsAllowed": 1}
    body = await c.update(PLURAL, body, group=GROUP, subresource="status")
    assert (body["spec"]["minAvailable"], body["status"]["disruptionsAllowed"]) == (1, 1)
    body["status"] |= {"disruptionsAllowed": -1, "conditions": [{"type": "A", "status": "Odd"}]}
    assert await c.faults(c.update(PLURAL, body, group=GROUP, subresource="status")) == [
        'status.conditions[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"',
        "status.conditions[0].lastTransitionTime: Required value",
        "status.conditions[0].reason: Required value",
        "status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0",
    ]


async def test_a_change_of_the_spec_is_a_new_generation(cluster: Callable[..., Any]) -> None:
    c = await cluster(POD_DISRUPTION_BUDGETS)
    assert (await c.create(PLURAL, budget(minAvailable="50%"), group=GROUP))["metadata"]["generation"] == 1
    assert (await c.change(PLURAL, "p", group=GROUP, minAvailable=1))["metadata"]["generation"] == 2
