"""Tests of pods from templates, and of the slow start."""

from __future__ import annotations

import asyncio

from steersman.api.apps.v1 import ReplicaSet
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.resources import REPLICA_SETS
from steersman.controllers.workloads.pod_control import pod_from_template, slow_start
from steersman.work.work_queue import TryLater
from tests.controllers.kubelet import template


async def test_batches_double_until_one_fails() -> None:
    tried: list[int] = []

    async def act(number: int) -> None:
        tried.append(number)
        await asyncio.sleep(0)
        if number >= 4:
            raise TryLater("no")

    succeeded, error = await slow_start(100, act)
    assert (succeeded, str(error)) == (4, "no")
    assert sorted(tried) == list(range(7))


async def test_all_are_done_when_none_fails() -> None:
    tried: list[int] = []

    async def act(number: int) -> None:
        tried.append(number)

    assert await slow_start(100, act) == (100, None)
    assert sorted(tried) == list(range(100))


def test_a_pod_is_named_after_its_owner_as_far_as_names_go() -> None:
    for name, prefix in (("a", "a-"), ("b" * 253, "b" * 253)):
        owner = ReplicaSet(metadata=ObjectMeta(name=name, namespace="n", uid="u"))
        assert pod_from_template(template(), REPLICA_SETS, owner).metadata.generate_name == prefix
