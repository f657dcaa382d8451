"""ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from typing import Any

from tools.controllers.world import World

LABELS = {"app": "a"}


def template(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod template."""
    return {"metadata": {"labels": labels or LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def replica_set(world: World, replicas: int, **spec: Any) -> None:
    given = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    world.create_from("apps/v1", "ReplicaSet", "rs", given)


def scaled(world: World) -> None:
    replica_set(world, 3)
    world.snapshot("made")
    world.run_pods()
    world.snapshot("run")
    world.patch("ReplicaSet", "rs", {"spec": {"replicas": 1}})
    world.snapshot("down")
    world.end_pods()
    world.snapshot("ended")
    world.patch("ReplicaSet", "rs", {"spec": {"replicas": 4}})
    world.snapshot("up")


def adopted(world: World) -> None:
    world.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mine", "labels": LABELS},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )
    replica_set(world, 2)
    world.snapshot("adopted")
    world.patch("Pod", "mine", {"metadata": {"labels": {"app": "other"}}})
    world.snapshot("released")
    world.run_pods(phase="Failed", ready=False, count=1, where=lambda pod: pod["metadata"]["name"] != "mine")
    world.snapshot("failed")


def refused(world: World) -> None:
    world.create_from("v1", "ResourceQuota", "q", {"hard": {"pods": "0"}})
    world.patch("ResourceQuota", "q", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}, "status")
    world.wait(0.5)
    replica_set(world, 1)
    world.wait(1)
    found = world.get("ReplicaSet", "rs")["status"]
    world.snapshots["refused"] = [
        {**each, "lastTransitionTime": None, "message": each["message"].replace(each["message"].split('"')[1], "POD")}
        for each in found["conditions"]
    ]
    world.delete("ResourceQuota", "q")


def available_later(world: World) -> None:
    replica_set(world, 2, minReadySeconds=8)
    world.settle()
    world.run_pods()
    world.snapshot("ready")
    world.wait(8.2)
    world.snapshot("available")


def deleted_first(world: World) -> None:
    replica_set(world, 4)
    world.settle()
    world.run_pods(count=1, status={"message": "first"})
    world.run_pods(count=1, ready=False, status={"message": "not ready"})
    world.run_pods(count=1, status={"message": "with cost"})
    pods = {each.get("status", {}).get("message"): each["metadata"]["name"] for each in world.list("Pod")}
    world.patch(
        "Pod", pods["with cost"], {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
    )
    for count in (3, 2, 1):
        world.patch("ReplicaSet", "rs", {"spec": {"replicas": count}})
        world.settle()
        world.end_pods()
        world.snapshot(f"{count} left")


def orphaned_by_deletion(world: World) -> None:
    replica_set(world, 2)
    world.settle()
    world.delete("ReplicaSet", "rs", propagationPolicy="Foreground")
    world.snapshot("being deleted")


def of_controller(world: World) -> None:
    world.create_from("v1", "ReplicationController", "rc", {"replicas": 2, "selector": LABELS, "template": template()})
    world.settle()
    world.run_pods()
    world.snapshot("run")
    world.patch("ReplicationController", "rc", {"spec": {"replicas": 1}})
    world.settle()
    world.end_pods()
    world.snapshot("down")


SCENARIOS = {
    f"replica_set_{each.__name__}": each
    for each in (scaled, adopted, refused, available_later, deleted_first, orphaned_by_deletion, of_controller)
}
