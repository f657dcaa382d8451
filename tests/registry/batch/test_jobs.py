"""Jobs: generated selectors, indexes, policies, permitted changes, and validation of the status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.batch.indexes import IndexesError, count_indexes, overlap
from steersman.registry.batch.jobs import JOBS

Cluster = Callable[..., Any]
UID = "batch.kubernetes.io/controller-uid"
NAME = "batch.kubernetes.io/job-name"


def job(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}
    template = {"metadata": {"labels": labels or {}}, "spec": pod}
    return {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}


async def test_a_job_finds_its_pods_by_its_own_uid(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    made = await c.create("jobs", job(), group="batch")
    uid = made["metadata"]["uid"]
    labels = {"controller-uid": uid, UID: uid, "job-name": "j", NAME: "j"}
    assert made["spec"]["selector"] == {"matchLabels": {UID: uid}}
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels
    assert (made["spec"]["completions"], made["spec"]["parallelism"], made["spec"]["backoffLimit"]) == (1, 1, 6)


async def test_labels_of_its_own_stay_a_jobs_only_labels(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    body = job({"l": "m"})
    body["metadata"]["labels"] = {"l": "m"}
    assert (await c.create("jobs", body, group="batch"))["metadata"]["labels"] == {"l": "m"}


async def test_a_foreign_selector_is_refused(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    body = job({"x": "y"}, selector={"matchLabels": {"x": "y"}})
    (fault,) = await c.faults(c.create("jobs", body, group="batch"))
    assert fault.startswith("spec.selector: Invalid value: ")
    assert fault.endswith("`selector` not auto-generated")


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"completionMode": "Indexed"}, "spec.completions: Required value: when completion mode is Indexed"),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
        (
            {"managedBy": "x"},
            'spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            'spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
            "requires indexed completion mode",
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
            "spec.podFailurePolicy.rules[0]: Invalid value: "
            "specifying one of OnExitCodes and OnPodConditions is required",
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}},
            "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
    ],
)
async def test_a_job_is_refused_in_the_words_of_the_reference(
    cluster: Cluster, spec: dict[str, Any], fault: str
) -> None:
    c = await cluster(JOBS)
    defaults: dict[str, Any] = {"parallelism": 1} if spec.get("completionMode") else {}
    assert await c.faults(c.create("jobs", job(**defaults, **spec), group="batch")) == [fault]


async def test_completions_are_fixed_unless_indexed_and_in_step_with_parallelism(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    await c.create("jobs", job(completionMode="Indexed", completions=2, parallelism=2), group="batch")
    changed = await c.change("jobs", "j", group="batch", completions=3, parallelism=3)
    assert (changed["spec"]["completions"], changed["metadata"]["generation"]) == (3, 2)
    assert await c.faults(c.change("jobs", "j", group="batch", completions=4)) == [
        "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"
    ]


async def test_only_a_held_jobs_template_can_change_and_only_where_and_with_what_it_runs(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    made = await c.create("jobs", job(suspend=True), group="batch")
    made["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    made = await c.update("jobs", made, group="batch")
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    (fault,) = await c.faults(c.update("jobs", made, group="batch"))
    assert fault.startswith('spec.template.spec: Invalid value: {"Volumes":null,')
    made = await c.change("jobs", "j", group="batch", suspend=False)
    made["spec"]["template"]["spec"]["nodeSelector"] = {"a": "c"}
    (fault,) = await c.faults(c.update("jobs", made, group="batch"))
    assert fault.startswith("spec.template: Invalid value: ")


async def write(c: Any, **status: Any) -> Any:
    body = await c.get("jobs", "j", group="batch")
    return await c.update("jobs", {**body, "status": status}, group="batch", subresource="status")


def conditions(*types: str) -> list[dict[str, str]]:
    return [{"type": each, "status": "True"} for each in types]


START, END = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


async def test_a_finished_job_stays_finished(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    await c.create("jobs", job(), group="batch")
    assert await c.faults(write(c, active=1, startTime=START, conditions=conditions("Complete"))) == [
        "status.completionTime: Required value: completionTime is required for Complete jobs",
        "status.conditions: Invalid value: "
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        "status.active: Invalid value: 1: active>0 is invalid for finished job",
    ]
    done = conditions("SuccessCriteriaMet", "Complete")
    await write(c, succeeded=1, startTime=START, completionTime=END, conditions=done)
    assert await c.faults(write(c, succeeded=0, startTime=START, completionTime=END, conditions=done)) == [
        "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter"
    ]
    assert await c.faults(write(c, succeeded=1, startTime=START)) == [
        "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
        "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
    ]


async def test_deleting_a_job_tells_that_its_pods_stay(cluster: Cluster) -> None:
    c = await cluster(JOBS)
    await c.create("jobs", job(), group="batch")
    warnings: list[str] = []
    await c.delete("jobs", "j", group="batch", warnings=warnings)
    assert [text.partition(";")[0] for text in warnings] == [
        "child pods are preserved by default when jobs are deleted"
    ]


@pytest.mark.parametrize(("text", "count"), [("", 0), ("1", 1), ("0,2-4", 4), ("7-9", 3)])
def test_indexes_are_counted(text: str, count: int) -> None:
    assert count_indexes(text, 10) == count


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("9-12", 'too large index: "12"'),
        ("b", 'cannot convert string to integer for index: "b"'),
        ("3,1", "non-increasing order, previous: 3, current: 1"),
        ("2-2", "non-increasing order, previous: 2, current: 2"),
    ],
)
def test_indexes_that_make_no_set_are_refused(text: str, error: str) -> None:
    with pytest.raises(IndexesError, match=error):
        count_indexes(text, 10)


def test_overlapping_indexes_are_found_past_what_cannot_be_read() -> None:
    assert overlap("0-2,x,7", "1-3", 10) == 1
    assert overlap("0,x,7", "1-3,7", 10) == 7
    assert overlap("0,7", "1-3", 10) is None
