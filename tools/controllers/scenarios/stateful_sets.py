"""StatefulSets."""

from __future__ import annotations

from typing import Any

from tools.controllers.scenarios.replica_sets import LABELS, template
from tools.controllers.world import World


def stateful_set(world: World, replicas: int = 3, **spec: Any) -> None:
    given = {
        "replicas": replicas,
        "serviceName": "svc",
        "selector": {"matchLabels": LABELS},
        "template": template(),
        **spec,
    }
    world.create_from("apps/v1", "StatefulSet", "web", given, annotations={"note": "first"})


def claim_template(name: str = "data") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name, "labels": {"of": "template"}}, "spec": spec}


def change_image(world: World, image: str) -> None:
    change = {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}
    world.patch("StatefulSet", "web", {"spec": change})


def turn(world: World, times: int, label: str = "") -> None:
    for number in range(times):
        world.settle()
        world.run_pods()
        world.end_pods()
        if label:
            world.snapshot(f"{label} {number}")


def ordered(world: World) -> None:
    stateful_set(world)
    world.snapshot("made")
    turn(world, 3, "up")
    world.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    turn(world, 3, "down")


def rolled(world: World) -> None:
    stateful_set(world, 2)
    turn(world, 3)
    change_image(world, "j")
    world.snapshot("changed")
    turn(world, 5, "step")
    change_image(world, "i")
    turn(world, 6)
    world.snapshot("back")


def partitioned(world: World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    stateful_set(world, 2, updateStrategy=strategy)
    turn(world, 3)
    change_image(world, "j")
    turn(world, 4)
    world.snapshot("above")
    world.delete("Pod", "web-0")
    turn(world, 3)
    world.snapshot("below stays old")


def parallel(world: World) -> None:
    stateful_set(world, 3, podManagementPolicy="Parallel", ordinals={"start": 5})
    world.snapshot("made")
    turn(world, 1)
    world.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    turn(world, 1)
    world.snapshot("down")


def on_delete(world: World) -> None:
    stateful_set(world, 1, updateStrategy={"type": "OnDelete"})
    turn(world, 1)
    change_image(world, "j")
    world.snapshot("changed")
    world.delete("Pod", "web-0")
    turn(world, 2)
    world.snapshot("replaced")


def with_claims(world: World) -> None:
    stateful_set(world, 2, volumeClaimTemplates=[claim_template()])
    turn(world, 2)
    world.snapshot("run")
    world.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    turn(world, 1)
    world.snapshot("down")


def with_claims_deleted(world: World) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    stateful_set(world, 2, volumeClaimTemplates=[claim_template()], persistentVolumeClaimRetentionPolicy=policy)
    turn(world, 2)
    world.snapshot("run")
    world.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    world.snapshot("down")
    changed = {"whenScaled": "Retain", "whenDeleted": "Retain"}
    world.patch("StatefulSet", "web", {"spec": {"persistentVolumeClaimRetentionPolicy": changed}})
    world.snapshot("retained")


def failed(world: World) -> None:
    stateful_set(world, 2)
    turn(world, 2)
    world.run_pods(phase="Failed", ready=False, count=1)
    world.settle()
    world.end_pods()
    turn(world, 1)
    world.snapshot("replaced")


def available_later(world: World) -> None:
    stateful_set(world, 2, minReadySeconds=8)
    world.settle()
    world.run_pods()
    world.snapshot("ready")
    world.wait(8.5)
    world.snapshot("available")


def adopted(world: World) -> None:
    world.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-0", "labels": LABELS},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )
    stateful_set(world, 1)
    world.snapshot("adopted")
    world.run_pods()
    world.snapshot("put right")


SCENARIOS = {
    f"stateful_set_{each.__name__}": each
    for each in (
        ordered,
        rolled,
        partitioned,
        parallel,
        on_delete,
        with_claims,
        with_claims_deleted,
        failed,
        available_later,
        adopted,
    )
}
