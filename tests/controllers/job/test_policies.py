"""Tests of pod failure policies and success policies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.api.batch.v1 import PodFailurePolicy, SuccessPolicy
from steersman.api.core.v1 import Pod
from steersman.controllers.job import intervals
from steersman.controllers.job.policies import Verdict, evaluate_failure, met_success_rule
from steersman.machinery.codec.serializer import from_plain


def pod(code: int, *, container: str = "c", disrupted: bool = False) -> Pod:
    state = {"terminated": {"exitCode": code, "startedAt": None, "finishedAt": None}}
    status = {"name": container, "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    conditions = [{"type": "DisruptionTarget", "status": "True"}] if disrupted else []
    plain = {
        "metadata": {"name": "p", "namespace": "n"},
        "status": {"containerStatuses": [status], "conditions": conditions},
    }
    return from_plain(Pod, plain)


def policy(*rules: dict[str, Any]) -> PodFailurePolicy:
    return from_plain(PodFailurePolicy, {"rules": list(rules)})


def exit_code_rule(action: str, operator: str, *values: int, **more: str) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def test_the_first_rule_that_matches_counts() -> None:
    found = policy(DISRUPTED, exit_code_rule("FailIndex", "In", 3), exit_code_rule("FailJob", "NotIn", 1, 2))
    assert evaluate_failure(found, pod(9, disrupted=True)) == Verdict(
        "Ignore", "Pod n/p has condition DisruptionTarget matching Ignore rule at index 0"
    )
    assert not evaluate_failure(found, pod(9, disrupted=True)).counts
    assert evaluate_failure(found, pod(3)).action == "FailIndex"
    assert evaluate_failure(found, pod(42)) == Verdict(
        "FailJob", "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 2"
    )
    assert evaluate_failure(found, pod(1)) == Verdict()
    assert evaluate_failure(None, pod(1)).counts


def test_a_rule_may_name_a_container_and_is_never_about_success() -> None:
    found = policy(exit_code_rule("FailJob", "NotIn", 5, containerName="main"))
    assert evaluate_failure(found, pod(1)) == Verdict()
    assert evaluate_failure(found, pod(1, container="main")).action == "FailJob"
    assert evaluate_failure(found, pod(0, container="main")) == Verdict()


@pytest.mark.parametrize(
    ("rule", "is_met"),
    [
        ({"succeededIndexes": "0,2-3"}, False),
        ({"succeededIndexes": "0,2"}, True),
        ({"succeededIndexes": "0,2-3", "succeededCount": 2}, True),
        ({"succeededCount": 3}, True),
        ({"succeededCount": 4}, False),
    ],
)
async def test_success_is_declared_by_indexes_or_their_number(rule: dict[str, Any], *, is_met: bool) -> None:
    found = await met_success_rule(from_plain(SuccessPolicy, {"rules": [rule]}), 10, intervals.from_indexes([0, 2, 5]))
    assert found == ("Matched rules at index 0" if is_met else None)


async def test_lists_that_cannot_be_met_yet_are_not_read_and_long_ones_give_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def parse(text: str, completions: int) -> intervals.Indexes:
        read.append(text)
        return intervals.Indexes([(0, completions)])

    monkeypatch.setattr(intervals, "parse", parse)
    rules = [
        {"succeededIndexes": "0,2,4-9"},
        {"succeededIndexes": "1,3,5", "succeededCount": 3},
        {"succeededIndexes": "0,3", "succeededCount": 9},
    ]
    policy = from_plain(SuccessPolicy, {"rules": rules})
    assert await met_success_rule(policy, 10, intervals.from_indexes([0])) is None
    assert not read
    assert await met_success_rule(policy, 10, intervals.from_indexes([0, 2])) is None
    assert read == ["0,3"]
    monkeypatch.undo()
    long = ",".join(str(2 * each) for each in range(9_000))
    policy = from_plain(SuccessPolicy, {"rules": [{"succeededIndexes": f"{long},19999"}] * 20})
    looking = asyncio.create_task(met_success_rule(policy, 20_000, intervals.from_indexes(range(19_999))))
    turns = 0
    while not looking.done():
        turns += 1
        await asyncio.sleep(0)
    assert looking.result() is None
    assert turns > 2
