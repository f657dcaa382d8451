"""Tests of the deletion of finished Jobs."""

from __future__ import annotations

from steersman.api.batch.v1 import Job, JobCondition, JobSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import JOBS
from steersman.controllers.ttl_after_finished import TTLAfterFinishedController
from steersman.machinery.values import times
from tests.controllers.kubelet import template
from tests.controllers.waiting import Run, eventually


async def create_finished_job(client: Client, name: str, seconds: int) -> None:
    spec = JobSpec(template=template(restart_policy="Never"), ttl_seconds_after_finished=seconds)
    job = await client.create(JOBS, Job(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
    now = times.now()
    job.status.start_time = job.status.completion_time = now
    job.status.conditions = [
        JobCondition(type=each, status="True", last_transition_time=now) for each in ("SuccessCriteriaMet", "Complete")
    ]
    await client.update_status(JOBS, job)


async def test_a_job_goes_when_its_time_is_over_and_what_it_owns_first(run: Run) -> None:
    client = await run(TTLAfterFinishedController)
    await create_finished_job(client, "later", 3600)
    await create_finished_job(client, "soon", 1)

    async def being_deleted() -> list[tuple[str, list[str]]]:
        found = (await client.list(JOBS, "default")).items
        return [(each.metadata.name, each.metadata.finalizers) for each in found if each.metadata.deletion_timestamp]

    assert await eventually(being_deleted) == [("soon", ["foregroundDeletion"])]
