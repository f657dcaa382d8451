"""ResourceSlices: sharing of capacity, and counters consumed by devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.resource.resourceslices import RESOURCE_SLICES

GROUP, PLURAL = "resource.k8s.io", "resourceslices"
Cluster = Callable[..., Any]
POLICY = "spec.devices[0].capacity[c].requestPolicy"


def resource_slice(**spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": "s"}, "spec": {"driver": "d.example.com", "pool": pool, "nodeName": "n", **spec}}


def shared(policy: dict[str, Any], *, value: str = "10", multiple: bool = True) -> dict[str, Any]:
    capacity = {"c": {"value": value, "requestPolicy": policy}}
    return resource_slice(devices=[{"name": "d", "allowMultipleAllocations": multiple, "capacity": capacity}])


def counters(count: int) -> dict[str, Any]:
    return {f"m{index}": {"value": "1"} for index in range(count)}


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"default": "1"},
        {"default": "1", "validValues": ["1", "2"]},
        {"default": "2", "validRange": {"min": "2"}},
        {"default": "4", "validRange": {"min": "2", "max": "10", "step": "2"}},
        {"default": "1500m", "validRange": {"min": "500m", "max": "2500m", "step": "500m"}},
        {"default": "-2", "validRange": {"min": "-2", "max": "10", "step": "2"}},
        {"default": "2", "validRange": {"min": "2", "max": "10", "step": "-1"}},
    ],
)
async def test_a_policy_may_be_a_choice_a_range_or_nothing(cluster: Cluster, policy: dict[str, Any]) -> None:
    c = await cluster(RESOURCE_SLICES)
    made = await c.create(PLURAL, shared(policy), group=GROUP)
    assert made["spec"]["devices"][0]["capacity"]["c"]["requestPolicy"] == {"default": None, **policy}


@pytest.mark.parametrize(
    ("policy", "faults"),
    [
        (
            {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
            [
                ': Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the '
                "same time"
            ],
        ),
        ({"validValues": ["1"]}, [".default: Required value: required when validValues is defined"]),
        ({"validRange": {"min": "1"}}, [".default: Required value: required when validRange is defined"]),
        (
            {"default": "3", "validValues": ["2", "1", "1", "20"]},
            [
                '.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
                '.validValues[3]: Invalid value: "20": option is larger than capacity value: 10',
                '.validValues[2]: Duplicate value: "1"',
                '.validValues: Invalid value: "3": default value is not valid according to the requestPolicy',
            ],
        ),
        ({"default": "1", "validValues": ["1", "1100m", "2"]}, ['.validValues[2]: Duplicate value: "2"']),
        (
            {"default": "1", "validValues": ["1"] * 11},
            [
                ".validValues: Too many: 11: must have at most 10 items",
                '.validValues: Invalid value: "1": default value is not valid according to the requestPolicy',
            ],
        ),
        (
            {"default": "1", "validRange": {"max": "3"}},
            [".validRange.min: Required value: required when validRange is defined"],
        ),
        (
            {"default": "1", "validRange": {"min": "20"}},
            [
                '.validRange.min: Invalid value: "20": min is larger than capacity value: 10',
                '.validRange.min: Invalid value: "1": default is less than min: 20',
            ],
        ),
        (
            {"default": "30", "validRange": {"min": "25", "max": "20"}},
            [
                '.validRange.min: Invalid value: "25": min is larger than capacity value: 10',
                '.validRange.max: Invalid value: "25": min is larger than max: 20',
                '.validRange.max: Invalid value: "20": max is larger than capacity value: 10',
                '.validRange.max: Invalid value: "30": default is more than max: 20',
            ],
        ),
        (
            {"default": "3", "validRange": {"min": "2", "max": "9", "step": "10"}},
            [
                '.validRange.step: Invalid value: "10": one step 12 is larger than capacity value: 10',
                '.validRange.step: Invalid value: "3": value is not a multiple of a given step (10) from (2)',
                '.validRange.step: Invalid value: "9": value is not a multiple of a given step (10) from (2)',
            ],
        ),
        (
            {"default": "2", "validRange": {"min": "2", "step": "0"}},
            ['.validRange.step: Invalid value: "0": must be greater than zero'],
        ),
    ],
)
async def test_a_policy_is_refused_for_each_thing_that_is_wrong(
    cluster: Cluster, policy: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(RESOURCE_SLICES)
    assert await c.faults(c.create(PLURAL, shared(policy), group=GROUP)) == [POLICY + fault for fault in faults]


async def test_only_what_several_claims_share_has_a_policy(cluster: Cluster) -> None:
    c = await cluster(RESOURCE_SLICES)
    assert await c.faults(c.create(PLURAL, shared({"default": "1"}, multiple=False), group=GROUP)) == [
        f"{POLICY}: Forbidden: allowMultipleAllocations must be true"
    ]


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        (
            {"sharedCounters": [{"name": "", "counters": {}}]},
            ["spec.sharedCounters[0].name: Required value", "spec.sharedCounters[0].counters: Required value"],
        ),
        (
            {"sharedCounters": [{"name": "cs", "counters": counters(33)}]},
            ["spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items"],
        ),
        (
            {"sharedCounters": [{"name": f"c{index}", "counters": counters(1)} for index in range(9)]},
            ["spec.sharedCounters: Too many: 9: must have at most 8 items"],
        ),
        (
            {"sharedCounters": [{"name": "cs", "counters": counters(1)}] * 2},
            ['spec.sharedCounters[1]: Duplicate value: "cs"'],
        ),
        (
            {"devices": [{"name": "d", "consumesCounters": [{"counterSet": "", "counters": {}}]}]},
            [
                "spec.devices[0].consumesCounters[0].counterSet: Required value",
                "spec.devices[0].consumesCounters[0].counters: Required value",
            ],
        ),
        (
            {
                "devices": [
                    {
                        "name": "d",
                        "consumesCounters": [
                            {"counterSet": f"c{index}", "counters": counters(1)} for index in range(3)
                        ],
                    }
                ]
            },
            ["spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items"],
        ),
        (
            {"devices": [{"name": "d"}], "sharedCounters": [{"name": "cs", "counters": counters(1)}]},
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
        ),
        (
            {"devices": [], "sharedCounters": [{"name": "cs", "counters": counters(1)}]},
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
        ),
    ],
)
async def test_counters_are_named_and_bounded(cluster: Cluster, spec: dict[str, Any], faults: list[str]) -> None:
    c = await cluster(RESOURCE_SLICES)
    assert await c.faults(c.create(PLURAL, resource_slice(**spec), group=GROUP)) == faults


async def test_a_counter_has_a_label_for_a_name(cluster: Cluster) -> None:
    c = await cluster(RESOURCE_SLICES)
    body = resource_slice(sharedCounters=[{"name": "A_", "counters": {"M_": {"value": "1"}}}])
    name, counter = await c.faults(c.create(PLURAL, body, group=GROUP))
    assert name.startswith('spec.sharedCounters[0].name: Invalid value: "A_": a lowercase RFC 1123 label')
    assert counter.startswith('spec.sharedCounters[0].counters: Invalid value: "M_": a lowercase RFC 1123 label')


async def test_a_slice_has_devices_or_counters_and_may_have_neither(cluster: Cluster) -> None:
    c = await cluster(RESOURCE_SLICES)
    made = await c.create(PLURAL, resource_slice(devices=[]), group=GROUP)
    assert "devices" not in made["spec"]
    made["spec"]["sharedCounters"] = [{"name": "cs", "counters": counters(32)}]
    assert len((await c.update(PLURAL, made, group=GROUP))["spec"]["sharedCounters"][0]["counters"]) == 32
