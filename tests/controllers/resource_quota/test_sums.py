"""Tests of incremental sums of usage."""

from __future__ import annotations

from random import Random

import pytest

from steersman.api.core.v1 import (
    Container,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    ScopedResourceSelectorRequirement,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.resource_quota.sums import Sum, Sums
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.pods import PodMeasure
from steersman.machinery.values import times

NAMES = {"pods", "count/pods", "requests.cpu", "requests.memory"}
BEST_EFFORT = ScopedResourceSelectorRequirement(scope_name="BestEffort", operator="Exists")
UNREADABLE = ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator="Near", values=["a"])


class CountingMeasure(PodMeasure):
    """A measure that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.measured = 0

    def usage(self, obj: Pod) -> Amounts:
        self.measured += 1
        return super().usage(obj)


def pod(name: str, cpu: str = "100m", phase: str = "Running", **metadata: object) -> Pod:
    requests = {"cpu": cpu, "memory": "1Mi"} if cpu else {}
    containers = [Container(name="c", resources=ResourceRequirements(requests=requests))]
    return Pod(
        metadata=ObjectMeta(name=name, namespace="n", **metadata),  # type: ignore[arg-type]
        spec=PodSpec(containers=containers),
        status=PodStatus(phase=phase),
    )


def texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


async def test_what_has_not_changed_is_not_measured_again() -> None:
    measure = CountingMeasure()
    found = Sum(measure, (), [pod(f"p{number}") for number in range(1000)])
    assert texts(await found.used(NAMES)) == {
        "pods": "1k",
        "count/pods": "1k",
        "requests.cpu": "100",
        "requests.memory": "1000Mi",
    }
    measure.measured = 0
    found.change("p7", pod("p7", phase="Succeeded"))
    found.change("p8", None)
    found.change("p9", pod("p9", "1"))
    found.change("p9", pod("p9", "2"))
    assert texts(await found.used(NAMES)) == {
        "pods": "998",
        "count/pods": "999",
        "requests.cpu": "101700m",
        "requests.memory": "998Mi",
    }
    assert measure.measured == 2


async def test_the_sum_of_changes_is_that_of_what_is_there() -> None:
    random = Random(7)
    there: dict[str, Pod] = {}
    for scopes in ((), (BEST_EFFORT,)):
        found = Sum(PodMeasure(), scopes, list(there.values()))
        for _ in range(300):
            name = f"p{random.randrange(30)}"
            made = pod(name, random.choice(["", "1", "250m", "1e3"]), random.choice(["Pending", "Running", "Failed"]))
            if random.random() < 0.3:
                there.pop(name, None)
                found.change(name, None)
            else:
                there[name] = made
                found.change(name, made)
            if random.random() < 0.2:
                assert await found.used(NAMES) == await Sum(PodMeasure(), scopes, list(there.values())).used(NAMES)


async def test_a_pod_that_is_to_be_gone_by_now_uses_nothing_though_nothing_was_told_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, deleted = times.unix_now(), times.now()
    found = Sum(PodMeasure(), (), [pod("p", deletion_timestamp=deleted, deletion_grace_period_seconds=30)])
    assert texts(await found.used({"pods", "count/pods"})) == {"pods": "1", "count/pods": "1"}
    monkeypatch.setattr(times, "unix_now", lambda: now + 60)
    assert texts(await found.used({"pods", "count/pods"})) == {"pods": "0", "count/pods": "1"}


async def test_scopes_that_cannot_be_read_have_nothing() -> None:
    assert texts(await Sum(PodMeasure(), (UNREADABLE,), [pod("p")]).used({"pods"})) == {"pods": "0"}


async def test_a_namespace_is_followed_once_it_was_asked_for_and_until_it_is_forgotten() -> None:
    measure = CountingMeasure()
    sums, there = Sums(measure), [pod("a"), pod("b")]
    sums.change(None, there[0])
    assert texts(await sums.get("n", (), lambda _: there).used({"pods"})) == {"pods": "2"}
    sums.change(there[0], None)
    assert texts(await sums.get("n", (), lambda _: there).used({"pods"})) == {"pods": "1"}
    assert texts(await sums.get("n", (BEST_EFFORT,), lambda _: there).used({"pods"})) == {"pods": "0"}
    measure.measured = 0
    sums.forget("n")
    await sums.get("n", (), lambda _: there).used({"pods"})
    assert measure.measured == 2


async def test_sums_of_a_namespace_are_bounded() -> None:
    sums = Sums(PodMeasure())
    made = [
        sums.get(
            "n",
            [ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator="In", values=[f"{each}"])],
            lambda _: [],
        )
        for each in range(100)
    ]
    assert len(sums._sums["n"]) == 16
    assert made[-1] in sums._sums["n"].values()
