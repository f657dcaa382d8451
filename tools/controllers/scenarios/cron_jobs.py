"""CronJobs. Their schedules come each second or in the past, so that there is something to see."""

from __future__ import annotations

from typing import Any

from tools.controllers.world import World


def cron_job(world: World, **spec: Any) -> None:
    template = {
        "metadata": {"labels": {"of": "job"}, "annotations": {"of": "job"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    }
    world.create_from("batch/v1", "CronJob", "c", {"schedule": "@yearly", "jobTemplate": template, **spec})


def past(world: World, **spec: Any) -> None:
    """One whose times have come: the last one was years ago."""
    cron_job(world, suspend=True, **spec)
    world.settle()
    world.patch("CronJob", "c", {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}, "status")
    world.patch("CronJob", "c", {"spec": {"suspend": False}})


def started(world: World) -> None:
    past(world)
    world.wait(1.3)
    world.snapshot("started")
    world.run_pods(phase="Succeeded", ready=False)
    world.wait(1.3)
    world.snapshot("ended")


def zoned(world: World) -> None:
    past(world, timeZone="America/New_York", schedule="30 12 1 1 *", startingDeadlineSeconds=100000000)
    world.wait(1.3)
    world.snapshot("started")


def missed(world: World) -> None:
    past(world, startingDeadlineSeconds=10)
    world.snapshot("nothing")


def never(world: World) -> None:
    cron_job(world, schedule="0 0 30 2 *")
    world.snapshot("never")


def forbidden(world: World) -> None:
    policies(world, "Forbid")


def replaced(world: World) -> None:
    policies(world, "Replace")


def policies(world: World, policy: str) -> None:
    """The last time comes again when the status says that it has not been kept."""
    past(world, concurrencyPolicy=policy, schedule="0 0 1 1 *")
    world.wait(1.3)
    world.snapshot("started")
    world.patch("CronJob", "c", {"spec": {"suspend": True, "schedule": "0 0 1 2 *"}})
    world.patch("CronJob", "c", {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}, "status")
    world.patch("CronJob", "c", {"spec": {"suspend": False}})
    world.wait(1.3)
    world.snapshot("again")


def history(world: World) -> None:
    past(world, successfulJobsHistoryLimit=0)
    world.wait(1.3)
    world.run_pods(phase="Succeeded", ready=False)
    world.wait(1.3)
    world.snapshot("ended")


SCENARIOS = {
    f"cron_job_{each.__name__}": each for each in (started, zoned, missed, never, forbidden, replaced, history)
}
