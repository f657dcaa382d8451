"""Jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.controllers.world import World


def job(world: World, **spec: Any) -> None:
    template = spec.pop("template", None) or {
        "metadata": {"labels": {"mine": "yes"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    world.create_from("batch/v1", "Job", "j", {"template": template, **spec})


def ended(code: int, *, name: str = "c", restarts: int = 0) -> dict[str, Any]:
    """The status of a container that has ended."""
    terminated = {"exitCode": code, "finishedAt": "2024-01-01T00:00:00Z"}
    status = {
        "name": name,
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": restarts,
        "state": {"terminated": terminated},
    }
    return {"containerStatuses": [status]}


def of_index(*indexes: int) -> Callable[[dict[str, Any]], bool]:
    """Return a check that a pod has one of these completion indexes."""
    names = {f"j-{each}-" for each in indexes}
    return lambda pod: pod["metadata"]["generateName"] in names


def rest(world: World, label: str) -> None:
    world.wait(1.3)
    world.snapshot(label)


def completed(world: World) -> None:
    job(world, completions=3, parallelism=2)
    rest(world, "made")
    world.run_pods()
    rest(world, "run")
    world.run_pods(phase="Succeeded", ready=False, count=1)
    rest(world, "one")
    world.run_pods(phase="Succeeded", ready=False)
    rest(world, "three")


def without_completions(world: World) -> None:
    job(world, parallelism=2)
    rest(world, "made")
    world.run_pods(phase="Succeeded", ready=False, count=1)
    rest(world, "one")
    world.run_pods(phase="Succeeded", ready=False)
    rest(world, "two")


def failed(world: World) -> None:
    job(world, backoffLimit=0, parallelism=2, completions=2)
    rest(world, "made")
    world.run_pods()
    world.run_pods(phase="Failed", ready=False, count=1)
    rest(world, "failed")
    world.end_pods()
    rest(world, "ended")


def backed_off(world: World) -> None:
    job(world, backoffLimit=1)
    rest(world, "made")
    world.run_pods(phase="Failed", ready=False, status=ended(3))
    rest(world, "again at once")
    world.run_pods(phase="Failed", ready=False)
    rest(world, "failed")


def indexed(world: World) -> None:
    job(world, completionMode="Indexed", completions=4, parallelism=3)
    rest(world, "made")
    world.run_pods()
    world.run_pods(phase="Succeeded", ready=False, where=of_index(0, 2))
    rest(world, "two")
    world.run_pods(phase="Succeeded", ready=False)
    rest(world, "all")


def per_index(world: World) -> None:
    job(world, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1, maxFailedIndexes=2)
    rest(world, "made")
    world.run_pods(phase="Failed", ready=False, status=ended(1), where=of_index(1))
    rest(world, "again")
    world.run_pods(phase="Failed", ready=False, status=ended(1), where=of_index(1))
    rest(world, "index failed")
    world.run_pods(phase="Succeeded", ready=False)
    rest(world, "others succeeded")


def failure_policy(world: World) -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}},
    ]
    job(world, backoffLimit=1, parallelism=2, completions=2, podFailurePolicy={"rules": rules})
    rest(world, "made")
    disrupted = {"conditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "Ready", "status": "False"}]}
    world.run_pods(phase="Failed", ready=False, count=1, status={**ended(1), **disrupted})
    rest(world, "ignored")
    world.run_pods(phase="Failed", ready=False, count=1, status=ended(42))
    world.wait(1.3)
    found = world.settle()["Job"][0]["status"]
    world.snapshots["failed"] = [[each["type"], each["reason"]] for each in found["conditions"]]


def success_policy(world: World) -> None:
    rules = [{"succeededIndexes": "0,2-3", "succeededCount": 2}]
    job(world, completionMode="Indexed", completions=4, parallelism=4, successPolicy={"rules": rules})
    rest(world, "made")
    world.run_pods()
    world.run_pods(phase="Succeeded", ready=False, where=of_index(0, 3))
    rest(world, "met")
    world.end_pods()
    rest(world, "ended")


def suspended(world: World) -> None:
    job(world, suspend=True, parallelism=2, completions=2)
    rest(world, "suspended")
    world.patch("Job", "j", {"spec": {"suspend": False}})
    rest(world, "resumed")
    world.run_pods()
    world.patch("Job", "j", {"spec": {"suspend": True}})
    rest(world, "suspended again")
    world.end_pods()
    rest(world, "ended")


def replaced(world: World) -> None:
    """Only pods that have failed are replaced."""
    job(world, podReplacementPolicy="Failed", parallelism=1, completions=1)
    rest(world, "made")
    world.run_pods()
    pod = world.list("Pod")[0]["metadata"]["name"]
    world.delete("Pod", pod)
    rest(world, "being deleted")
    world.patch("Pod", pod, {"status": {"phase": "Failed", **ended(1)}}, "status")
    world.end_pods()
    rest(world, "replaced")


def scaled(world: World) -> None:
    job(world, parallelism=3, completions=5)
    rest(world, "made")
    world.run_pods(count=1)
    world.patch("Job", "j", {"spec": {"parallelism": 1}})
    rest(world, "fewer")


def past_deadline(world: World) -> None:
    job(world, activeDeadlineSeconds=2)
    world.wait(2.2)
    rest(world, "failed")


def deleted_after_ttl(world: World) -> None:
    job(world, ttlSecondsAfterFinished=2)
    rest(world, "made")
    world.run_pods(phase="Succeeded", ready=False)
    world.wait(1.3)
    world.wait(3)
    world.snapshot("being deleted")


SCENARIOS = {
    f"job_{each.__name__}": each
    for each in (
        completed,
        without_completions,
        failed,
        backed_off,
        indexed,
        per_index,
        failure_policy,
        success_policy,
        suspended,
        replaced,
        scaled,
        past_deadline,
        deleted_after_ttl,
    )
}
