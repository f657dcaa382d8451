"""ResourcePoolStatusRequests, which are requested and answered once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.meta.v1 import Condition
from steersman.api.resource.v1alpha3 import PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus
from steersman.registry.resource.resourcepoolstatusrequests import RESOURCE_POOL_STATUS_REQUESTS

GROUP = "resource.k8s.io"
PLURAL = "resourcepoolstatusrequests"
READY = {
    "type": "Complete",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def request(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, ["spec.driver: Required value"]),
        ({"driver": "A.b", "limit": 0}, ["spec.limit: Invalid value: 0: must be greater than or equal to 1"]),
        ({"driver": "a", "limit": 1001}, ["spec.limit: Invalid value: 1001: must be less than or equal to 1000"]),
        ({"driver": "a", "poolName": "a//b"}, ['spec.poolName: Invalid value: "a//b": segment 1: must not be empty']),
    ],
)
async def test_invalid_request_is_refused(cluster: Callable[..., Any], spec: Any, faults: list[str]) -> None:
    c = await cluster(RESOURCE_POOL_STATUS_REQUESTS)
    assert await c.faults(c.create(PLURAL, request(**spec), group=GROUP)) == faults


async def test_names_are_told_to_be_wrong_in_the_words_of_declarative_validation(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_POOL_STATUS_REQUESTS)
    faults = await c.faults(c.create(PLURAL, request(driver="x" * 254, poolName="a/B"), group=GROUP))
    assert faults[0] == f'spec.driver: Invalid value: "{"x" * 254}": must be no more than 253 bytes'
    assert faults[1].startswith('spec.poolName: Invalid value: "B": segment 1: a lowercase RFC 1123 subdomain must')


async def test_a_hundred_pools_are_asked_for_and_the_question_stays(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_POOL_STATUS_REQUESTS)
    made = await c.create(PLURAL, request(driver="a"), group=GROUP)
    assert made["spec"] == {"driver": "a", "limit": 100}
    assert await c.faults(c.change(PLURAL, "r", group=GROUP, limit=5)) == [
        "spec: Invalid value: null: field is immutable"
    ]


async def test_there_is_one_answer(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_POOL_STATUS_REQUESTS)
    made = await c.create(PLURAL, request(driver="a"), group=GROUP)
    bad = {"pools": [{"driver": "a", "poolName": "b", "totalDevices": -1}], "conditions": [READY, READY]}
    faults = await c.faults(c.update(PLURAL, made | {"status": bad}, group=GROUP, subresource="status"))
    assert [fault.partition(": ")[0] for fault in faults] == [
        "status.conditions[1].type",
        "status.poolCount",
        "status.pools[0].generation",
        "status.pools[0].totalDevices",
        "status.conditions[1]",
    ]
    answer = made | {"status": {"poolCount": 1, "conditions": [READY]}}
    answered = await c.update(PLURAL, answer, group=GROUP, subresource="status")
    again = answered | {"status": {"poolCount": 2, "conditions": [READY]}}
    [fault] = await c.faults(c.update(PLURAL, again, group=GROUP, subresource="status"))
    assert fault.startswith('status: Invalid value: {"PoolCount":2,"Pools":null,"Conditions":[{"type":"Complete",')
    assert fault.endswith("field is immutable")


def cells(status: ResourcePoolStatusRequestStatus | None) -> list[Any]:
    resource_pool_status_request = ResourcePoolStatusRequest(status=status)
    return [
        column.cell(resource_pool_status_request) for column in RESOURCE_POOL_STATUS_REQUESTS.columns if column.cell
    ][1:8]


def test_tables_sum_up_the_pools() -> None:
    pools = [
        PoolStatus(total_devices=4, available_devices=1, allocated_devices=2, unavailable_devices=1),
        PoolStatus(total_devices=1, validation_error="bad"),
    ]
    status = ResourcePoolStatusRequestStatus(pool_count=3, pools=pools)
    assert cells(None) == ["-", "-", "-", "-", "-", 0, "Pending"]
    assert cells(status) == ["5", "1", "2", "1", "1", 3, "Pending"]
    status.conditions = [Condition(type="Complete", status="True")]
    assert cells(status) == ["5", "1", "2", "1", "1", 3, "Complete (2/3 pools)"]
    status.conditions = [Condition(type="Failed", status="True")]
    assert cells(status) == ["-", "-", "-", "-", "-", 3, "Failed"]
