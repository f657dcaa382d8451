"""LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.core.v1 import ResourceQuota
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.limitranges import LIMIT_RANGES
from steersman.registry.core.resourcequotas import RESOURCE_QUOTAS
from steersman.rest.context import Context


def limits(*items: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"limits": list(items)}}


def quota(hard: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}


async def test_container_limits_follow_from_max_and_requests_from_limits(cluster: Callable[..., Any]) -> None:
    c = await cluster(LIMIT_RANGES)
    item = {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "100m"}}
    made = (await c.create("limitranges", limits({**item, "default": {"cpu": "500m"}})))["spec"]["limits"][0]
    assert made["default"] == {"cpu": "500m", "memory": "1Gi"}
    assert made["defaultRequest"] == {"cpu": "500m", "memory": "1Gi"}


async def test_nameless_limit_range_gets_a_uid_for_a_name(cluster: Callable[..., Any]) -> None:
    c = await cluster(LIMIT_RANGES)
    made = await c.create("limitranges", {"metadata": {}, "spec": {"limits": []}})
    assert len(made["metadata"]["name"]) == 36
    assert made["spec"] == {"limits": None}


@pytest.mark.parametrize(
    ("item", "faults"),
    [
        (
            {
                "type": "Container",
                "max": {"cpu": 1},
                "min": {"cpu": 2},
                "default": {"cpu": 3},
                "defaultRequest": {"cpu": "500m"},
            },
            [
                'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
                'spec.limits[0].defaultRequest[cpu]: Invalid value: "500m": '
                "min value 2 is greater than default request value 500m",
                'spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1',
            ],
        ),
        (
            {"type": "Pod", "default": {"cpu": 1}},
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            {"type": "PersistentVolumeClaim"},
            [
                "spec.limits[0].limits: Required value: "
                "either minimum or maximum storage value is required, but neither was provided"
            ],
        ),
        (
            {
                "type": "Pod",
                "max": {"memory": "1Gi"},
                "min": {"memory": "512Mi"},
                "maxLimitRequestRatio": {"memory": 4},
            },
            [
                'spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: "4": '
                "ratio 4 is greater than max/min = 2.000000"
            ],
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}},
            ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        ),
        (
            {"type": "Other", "max": {"cpu": 1}},
            ['spec.limits[0].type: Invalid value: "Other": must be a standard limit type or fully qualified'],
        ),
    ],
)
async def test_limits_that_contradict_each_other_are_refused(
    cluster: Callable[..., Any], item: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(LIMIT_RANGES)
    assert await c.faults(c.create("limitranges", limits(item))) == faults


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (quota({"pods": "1500m"}), ['spec.hard[pods]: Invalid value: "1500m": must be an integer']),
        (quota({"cpu": -1}), ['spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0']),
        (
            quota({"bogus": 1}),
            [
                'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified',
                'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource for quota',
            ],
        ),
        (
            quota({"pods": 1}, scopes=["BestEffort", "NotBestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
        ),
        (
            quota({"pods": 1, "cpu": 1}, scopes=["BestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
        (
            quota({"pods": 1}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}),
            [
                "spec.scopeSelector.matchExpressions.values: Required value: "
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
    ],
)
async def test_invalid_quota_is_refused(cluster: Callable[..., Any], body: dict[str, Any], faults: list[str]) -> None:
    c = await cluster(RESOURCE_QUOTAS)
    assert await c.faults(c.create("resourcequotas", body)) == faults


async def test_scopes_may_not_change_and_status_is_kept(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_QUOTAS)
    await c.create("resourcequotas", quota({"pods": 1}, scopes=["NotTerminating"]))
    status = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    await c.update("resourcequotas", {**quota({}), "status": status}, subresource="status")
    assert (await c.update("resourcequotas", quota({"pods": 2}, scopes=["NotTerminating"])))["status"] == status
    assert await c.faults(c.update("resourcequotas", quota({"pods": 2}))) == [
        "spec.scopes: Invalid value: null: field is immutable"
    ]


def test_requests_above_limits_are_warned_about() -> None:
    obj = from_plain(ResourceQuota, quota({"cpu": "2", "limits.cpu": "1"}))
    assert list(RESOURCE_QUOTAS.strategy.warnings_on_create(Context(), obj)) == [
        "ResourceQuota cpu (2) should be less than limits.cpu (1)"
    ]


def test_table_parts_requests_from_limits() -> None:
    hard = {"limits.memory": "1Gi", "pods": "2", "requests.cpu": "1"}
    obj = from_plain(ResourceQuota, {"status": {"hard": hard, "used": {"pods": "1"}}})
    cells = [column.cell(obj) for column in RESOURCE_QUOTAS.columns if column.cell is not None]
    assert cells == ["pods: 1/2, requests.cpu: 0/1", "limits.memory: 0/1Gi"]
