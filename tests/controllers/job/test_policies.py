"""What policies say of pods and indexes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.batch.v1 import PodFailurePolicy, SuccessPolicy
from steersman.api.core.v1 import Pod
from steersman.controllers.job import intervals
from steersman.controllers.job.policies import Verdict, judge, met
from steersman.machinery.codec.serializer import from_plain


def pod(code: int, *, container: str = "c", disrupted: bool = False) -> Pod:
    state = {"terminated": {"exitCode": code, "startedAt": None, "finishedAt": None}}
    status = {"name": container, "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    conditions = [{"type": "DisruptionTarget", "status": "True"}] if disrupted else []
    plain = {
        "metadata": {"name": "p", "namespace": "n"},
        "status": {"containerStatuses": [status], "conditions": conditions},
    }  # fmt: skip
    return from_plain(Pod, plain)


def policy(*rules: dict[str, Any]) -> PodFailurePolicy:
    return from_plain(PodFailurePolicy, {"rules": list(rules)})


def exits(action: str, operator: str, *values: int, **more: str) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def test_the_first_rule_that_matches_counts() -> None:
    found = policy(DISRUPTED, exits("FailIndex", "In", 3), exits("FailJob", "NotIn", 1, 2))
    assert judge(found, pod(9, disrupted=True)) == Verdict(
        "Ignore", "Pod n/p has condition DisruptionTarget matching Ignore rule at index 0"
    )
    assert not judge(found, pod(9, disrupted=True)).counts
    assert judge(found, pod(3)).action == "FailIndex"
    assert judge(found, pod(42)) == Verdict(
        "FailJob", "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 2"
    )
    assert judge(found, pod(1)) == Verdict()
    assert judge(None, pod(1)).counts


def test_a_rule_may_name_a_container_and_is_never_about_success() -> None:
    found = policy(exits("FailJob", "NotIn", 5, containerName="main"))
    assert judge(found, pod(1)) == Verdict()
    assert judge(found, pod(1, container="main")).action == "FailJob"
    assert judge(found, pod(0, container="main")) == Verdict()


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
def test_success_is_declared_by_indexes_or_their_number(rule: dict[str, Any], *, is_met: bool) -> None:
    found = met(from_plain(SuccessPolicy, {"rules": [rule]}), 10, intervals.of([0, 2, 5]))
    assert found == ("Matched rules at index 0" if is_met else None)
