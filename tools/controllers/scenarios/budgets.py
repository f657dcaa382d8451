"""PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

from tools.controllers.scenarios.replica_sets import LABELS, template
from tools.controllers.world import World


def budget(world: World, name: str = "b", **spec: Any) -> None:
    """A budget of the pods of the other scenarios."""
    world.create_from("policy/v1", "PodDisruptionBudget", name, {"selector": {"matchLabels": LABELS}, **spec})


def owner(world: World, kind: str, replicas: int, **spec: Any) -> None:
    """Something that has pods."""
    given = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    world.create_from("apps/v1", kind, "w", given)


def counted(world: World) -> None:
    owner(world, "ReplicaSet", 4)
    world.settle()
    budget(world, minAvailable=2)
    budget(world, "percent", minAvailable="60%", selector={"matchLabels": {"none": "such"}})
    world.snapshot("none run")
    world.run_pods(count=3)
    world.snapshot("three run")
    world.run_pods()
    world.snapshot("all run")
    world.patch("PodDisruptionBudget", "b", {"spec": {"minAvailable": "70%"}})
    world.snapshot("percent")
    world.patch("PodDisruptionBudget", "b", {"spec": {"minAvailable": None, "maxUnavailable": "30%"}})
    world.snapshot("max unavailable")
    world.patch("ReplicaSet", "w", {"spec": {"replicas": 2}})
    world.end_pods()
    world.settle()
    world.end_pods()
    world.snapshot("scaled")


def of_deployments(world: World) -> None:
    owner(world, "Deployment", 3)
    world.settle()
    world.run_pods()
    budget(world, maxUnavailable=1)
    world.snapshot("run")
    world.evict(world.list("Pod")[0]["metadata"]["name"])
    world.snapshot("evicted")
    world.end_pods()
    world.settle()
    world.run_pods()
    world.snapshot("run again")


def of_stateful_sets(world: World) -> None:
    owner(world, "StatefulSet", 2, serviceName="s", podManagementPolicy="Parallel")
    world.settle()
    world.run_pods()
    budget(world, minAvailable="50%", unhealthyPodEvictionPolicy="AlwaysAllow")
    world.snapshot("run")


def unmanaged(world: World) -> None:
    for name in ("one", "two"):
        world.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": LABELS},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
        )
    world.run_pods()
    budget(world, maxUnavailable=1)
    world.wait(1)
    world.snapshots["status"] = _status(world)
    world.snapshots["events"] = _events(world)


def owners_without_scale(world: World) -> None:
    owners = {
        "none": {"apiVersion": "example.com/v1", "kind": "None", "name": "w", "uid": "u"},
        "unscaled": {"apiVersion": "v1", "kind": "ConfigMap", "name": "w", "uid": "u"},
        "gone": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "u"},
    }
    for name, reference in owners.items():
        world.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "labels": {"app": name},
                    "ownerReferences": [{**reference, "controller": True}],
                },
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
        )
        budget(world, name, maxUnavailable=1, selector={"matchLabels": {"app": name}})
    world.wait(2)
    world.snapshots["status"] = _status(world)
    world.snapshots["events"] = _events(world)


def several(world: World) -> None:
    owner(world, "ReplicaSet", 2)
    world.settle()
    budget(world, "x", minAvailable=1)
    budget(world, "y", minAvailable=1)
    world.settle()
    world.run_pods()
    world.wait(1)
    world.snapshots["events"] = sorted({each["reason"] for each in world.list("Event")})


def _status(world: World) -> list[Any]:
    """Return the statuses of all budgets, without times."""
    found = sorted(world.list("PodDisruptionBudget"), key=lambda each: str(each["metadata"]["name"]))
    for each in found:
        for condition in each["status"]["conditions"]:
            condition["lastTransitionTime"] = None
    return [each["status"] for each in found]


def _events(world: World) -> list[Any]:
    """Return the distinct events."""
    told = {
        (each["involvedObject"]["name"], each["type"], each["reason"], each["message"], each["source"]["component"])
        for each in world.list("Event")
    }
    return sorted(map(list, told))


SCENARIOS = {
    "budgets_counted": counted,
    "budgets_of_deployments": of_deployments,
    "budgets_of_stateful_sets": of_stateful_sets,
    "budgets_unmanaged": unmanaged,
    "budgets_owners_without_scale": owners_without_scale,
    "budgets_several": several,
}
