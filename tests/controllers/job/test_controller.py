"""Tests of the Job controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.batch.v1 import Job, JobSpec, JobStatus
from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import EVENTS, JOBS, PODS
from steersman.controllers.job.controller import JobController
from steersman.controllers.job.state import FAILURE_COUNT, FINALIZER, INDEX
from steersman.machinery.codec.serializer import from_plain
from tests.controllers.kubelet import end_pods, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually

LONG_AGO = "2024-01-01T00:00:00Z"


async def start_job(run: Run, **spec: Any) -> Client:
    client = await run(JobController, job_sync_period=0.0)
    spec.setdefault("template", template(restart_policy="Never"))
    await client.create(JOBS, Job(metadata=ObjectMeta(name="j", namespace="default"), spec=JobSpec(**spec)))
    return client


async def status(client: Client) -> JobStatus:
    return (await client.get(JOBS, "j", "default")).status


async def wait_for_status(client: Client, **wanted: Any) -> JobStatus:
    """Return the status once it has these members."""

    async def look() -> JobStatus | None:
        found = await status(client)
        return found if all(getattr(found, name) == value for name, value in wanted.items()) else None

    found = await eventually(look)
    assert found is not None
    return found


async def conditions(client: Client, *types: str) -> list[tuple[str, str, str]]:
    """Return type, reason and message of the conditions once these types are present."""

    async def look() -> list[tuple[str, str, str]]:
        found = (await status(client)).conditions
        return (
            [(each.type, each.reason, each.message) for each in found]
            if [each.type for each in found] == list(types)
            else []
        )

    return await eventually(look)


async def end_with_phase(client: Client, phase: str, **more: Any) -> None:
    await run_pods(client, phase=phase, ready=False, since=LONG_AGO, **more)


def has_index(*indexes: int) -> Callable[[Pod], bool]:
    return lambda pod: pod.metadata.annotations.get(INDEX) in {str(index) for index in indexes}


def exited_with(code: int) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "startedAt": LONG_AGO, "finishedAt": LONG_AGO}}
    return {
        "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        ]
    }


async def test_pods_are_made_until_enough_have_succeeded(run: Run) -> None:
    client = await start_job(run, completions=3, parallelism=2)
    await wait_for_status(client, active=2)
    pods = await pods_of(client)
    assert [pod.metadata.finalizers for pod in pods] == [[FINALIZER]] * 2
    await end_with_phase(client, "Succeeded", count=1)
    await wait_for_status(client, active=2, succeeded=1)
    await end_with_phase(client, "Succeeded")
    told = await conditions(client, "SuccessCriteriaMet", "Complete")
    assert told[1] == ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    found = await wait_for_status(client, active=0, succeeded=3, ready=0, terminating=0)
    assert found.completion_time
    assert not found.uncounted_terminated_pods or not found.uncounted_terminated_pods.succeeded
    assert [pod.metadata.finalizers for pod in await pods_of(client)] == [[]] * 3

    async def event() -> bool:
        return ("Completed", "Job completed") in [
            (each.reason, each.message) for each in (await client.list(EVENTS, "default")).items
        ]

    await eventually(event)


async def test_without_completions_the_first_success_is_the_end(run: Run) -> None:
    client = await start_job(run, parallelism=2)
    await wait_for_status(client, active=2)
    await end_with_phase(client, "Succeeded", count=1)
    await wait_for_status(client, active=1, succeeded=1)
    await end_with_phase(client, "Succeeded")
    await conditions(client, "SuccessCriteriaMet", "Complete")


async def test_too_many_failures_end_it_when_its_pods_have_ended(run: Run) -> None:
    client = await start_job(run, backoff_limit=0, parallelism=2, completions=2)
    await wait_for_status(client, active=2)
    await run_pods(client, count=1)
    await end_with_phase(client, "Failed", where=lambda pod: pod.status.phase == "Pending")
    told = await conditions(client, "FailureTarget")
    assert told == [("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")]
    await wait_for_status(client, terminating=1)
    await end_pods(client)
    await conditions(client, "FailureTarget", "Failed")


async def test_a_pod_that_failed_long_ago_is_replaced_at_once(run: Run) -> None:
    client = await start_job(run, backoff_limit=1)
    await wait_for_status(client, active=1)
    await end_with_phase(client, "Failed", status=exited_with(1))
    await wait_for_status(client, active=1, failed=1)


async def test_each_index_has_its_pod(run: Run) -> None:
    client = await start_job(run, completion_mode="Indexed", completions=3, parallelism=2)
    await wait_for_status(client, active=2)
    pods = {pod.metadata.annotations[INDEX]: pod for pod in await pods_of(client)}
    assert sorted(pods) == ["0", "1"]
    pod = pods["1"]
    assert (pod.metadata.generate_name, pod.spec.hostname, pod.metadata.labels[INDEX]) == ("j-1-", "j-1", "1")
    (container,) = pod.spec.containers or []
    assert [each.name for each in container.env] == ["JOB_COMPLETION_INDEX"]
    await end_with_phase(client, "Succeeded", where=has_index(1))
    await wait_for_status(client, active=2, completed_indexes="1")
    await end_with_phase(client, "Succeeded")
    await wait_for_status(client, completed_indexes="0-2", succeeded=3)
    await conditions(client, "SuccessCriteriaMet", "Complete")


async def test_each_index_has_failures_of_its_own(run: Run) -> None:
    client = await start_job(run, completion_mode="Indexed", completions=2, parallelism=2, backoff_limit_per_index=1)
    await wait_for_status(client, active=2)
    await end_with_phase(client, "Failed", where=has_index(1), status=exited_with(1))

    async def have_failure_counts() -> bool:
        counts = [
            pod.metadata.annotations[FAILURE_COUNT] for pod in await pods_of(client) if pod.status.phase == "Pending"
        ]
        return sorted(counts) == ["0", "1"]

    await eventually(have_failure_counts)
    await end_with_phase(client, "Failed", where=has_index(1), status=exited_with(1))
    await wait_for_status(client, failed_indexes="1", active=1)
    await end_with_phase(client, "Succeeded")
    told = await conditions(client, "FailureTarget", "Failed")
    assert told[1] == ("Failed", "FailedIndexes", "Job has failed indexes")


async def test_a_policy_ignores_failures_or_ends_the_job(run: Run) -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    policy = from_plain(JobSpec, {"podFailurePolicy": {"rules": rules}, "template": {}}).pod_failure_policy
    client = await start_job(run, backoff_limit=0, pod_failure_policy=policy)
    await wait_for_status(client, active=1)
    await end_with_phase(client, "Failed", status=exited_with(7))
    await eventually(lambda: _pending(client))
    assert (await wait_for_status(client, active=1)).failed == 0
    await end_with_phase(client, "Failed", status=exited_with(42))
    told = await conditions(client, "FailureTarget", "Failed")
    assert told[1][1] == "PodFailurePolicy"
    assert told[1][2].endswith("failed with exit code 42 matching FailJob rule at index 1")


async def _pending(client: Client) -> bool:
    return any(pod.status.phase == "Pending" for pod in await pods_of(client))


async def test_a_success_policy_ends_it_early(run: Run) -> None:
    rules = {"successPolicy": {"rules": [{"succeededIndexes": "1"}]}, "template": {}}
    policy = from_plain(JobSpec, rules).success_policy
    client = await start_job(run, completion_mode="Indexed", completions=3, parallelism=3, success_policy=policy)
    await wait_for_status(client, active=3)
    await run_pods(client)
    await end_with_phase(client, "Succeeded", where=has_index(1))
    await wait_for_status(client, terminating=2)
    await end_pods(client)
    told = await conditions(client, "SuccessCriteriaMet", "Complete")
    assert told[1] == ("Complete", "SuccessPolicy", "Matched rules at index 0")


async def test_a_suspended_one_has_no_pods(run: Run) -> None:
    client = await start_job(run, suspend=True, parallelism=2, completions=2)
    assert await conditions(client, "Suspended") == [("Suspended", "JobSuspended", "Job suspended")]
    assert (await status(client)).start_time is None
    await client.patch(JOBS, "j", "default", {"spec": {"suspend": False}})
    assert (await wait_for_status(client, active=2)).start_time
    await client.patch(JOBS, "j", "default", {"spec": {"suspend": True}})
    await wait_for_status(client, active=0)
    assert await pods_of(client) == []


async def test_pods_are_replaced_only_when_they_have_failed(run: Run) -> None:
    client = await start_job(run, pod_replacement_policy="Failed")
    await wait_for_status(client, active=1)
    await run_pods(client)
    (pod,) = await pods_of(client)
    await client.delete(PODS, pod.metadata.name, "default")
    await wait_for_status(client, active=0, terminating=1)
    assert await pods_of(client) == []


async def test_it_fails_when_its_time_is_over(run: Run) -> None:
    client = await start_job(run, active_deadline_seconds=1)
    told = await conditions(client, "FailureTarget", "Failed")
    assert told[1] == ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    assert await pods_of(client) == []


async def test_fewer_pods_run_when_fewer_are_wanted(run: Run) -> None:
    client = await start_job(run, parallelism=3, completions=5)
    await wait_for_status(client, active=3)
    await run_pods(client, count=1)
    await client.patch(JOBS, "j", "default", {"spec": {"parallelism": 1}})
    await wait_for_status(client, active=1)
    assert [pod.status.phase for pod in await pods_of(client)] == ["Running"]


async def test_pods_of_a_job_that_is_gone_lose_their_finalizer(run: Run) -> None:
    client = await start_job(run)
    await wait_for_status(client, active=1)
    await client.delete(JOBS, "j", "default", DeleteOptions(propagation_policy="Background"))

    async def let_go() -> bool:
        return [pod.metadata.finalizers for pod in await pods_of(client)] == [[]]

    await eventually(let_go)


async def test_a_job_that_another_manages_is_left_alone(run: Run) -> None:
    client = await start_job(run, managed_by="example.com/other")
    await client.create(
        JOBS,
        Job(
            metadata=ObjectMeta(name="ours", namespace="default"),
            spec=JobSpec(template=template(restart_policy="Never")),
        ),
    )
    pods = await eventually(lambda: pods_of(client))
    assert {each.name for pod in pods for each in pod.metadata.owner_references} == {"ours"}
    assert await status(client) == JobStatus()
