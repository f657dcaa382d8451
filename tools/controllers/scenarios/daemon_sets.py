"""DaemonSets."""

from __future__ import annotations

from typing import Any

from tools.controllers.scenarios.replica_sets import LABELS, template
from tools.controllers.world import World


def daemon_set(world: World, **spec: Any) -> None:
    given = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    world.create_from("apps/v1", "DaemonSet", "ds", given, annotations={"note": "first"})


def nodes(world: World, count: int = 3) -> None:
    for number in range(count):
        world.add_node(f"{world.name}-{number}", {"zone": "even" if number % 2 == 0 else "odd"})


def change_image(world: World, image: str) -> None:
    change = {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}
    world.patch("DaemonSet", "ds", {"spec": change})


def turn(world: World, times: int, label: str = "") -> None:
    for number in range(times):
        world.settle()
        world.run_pods()
        world.end_pods()
        if label:
            world.snapshot(f"{label} {number}")


def rolled(world: World) -> None:
    nodes(world)
    daemon_set(world)
    world.snapshot("made")
    turn(world, 1)
    world.snapshot("run")
    change_image(world, "j")
    world.snapshot("changed")
    turn(world, 9)
    world.snapshot("done")
    change_image(world, "i")
    turn(world, 9)
    world.snapshot("back")


def surged(world: World) -> None:
    nodes(world)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    daemon_set(world, updateStrategy=strategy)
    turn(world, 1)
    world.snapshot("run")
    change_image(world, "j")
    world.settle()
    found = [each for each in world.list("Pod") if each["spec"]["containers"][0]["image"] == "j"]
    world.snapshots["surge"] = len(found)
    turn(world, 8)
    world.snapshot("done")


def half(world: World) -> None:
    nodes(world, 4)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}
    daemon_set(world, updateStrategy=strategy, minReadySeconds=2)
    turn(world, 1)
    world.wait(2.5)
    world.snapshot("run")
    change_image(world, "j")
    world.settle()
    world.snapshots["going"] = sum("deletionTimestamp" in each["metadata"] for each in world.list("Pod"))


def on_delete(world: World) -> None:
    nodes(world, 2)
    daemon_set(world, updateStrategy={"type": "OnDelete"})
    turn(world, 1)
    change_image(world, "j")
    world.snapshot("changed")
    world.delete("Pod", world.list("Pod")[0]["metadata"]["name"])
    world.settle()
    world.end_pods()
    turn(world, 1)
    world.settle()
    world.snapshots["images"] = sorted(each["spec"]["containers"][0]["image"] for each in world.list("Pod"))


def selected(world: World) -> None:
    nodes(world, 4)
    taint = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    world.add_node(f"{world.name}-tainted", {"zone": "even"}, taints=taint)
    expression = {"key": "zone", "operator": "In", "values": ["even"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    daemon_set(world, template=template(affinity=affinity, hostNetwork=True))
    turn(world, 1)
    world.snapshot("run")
    world.patch("Node", f"{world.name}-0", {"metadata": {"labels": {"zone": "odd"}}})
    world.settle()
    world.end_pods()
    world.snapshot("moved")
    world.patch("Node", f"{world.name}-2", {"spec": {"taints": taint}})
    world.snapshot("tainted")
    world.patch("Node", f"{world.name}-2", {"spec": {"taints": [{**taint[0], "effect": "NoExecute"}]}})
    world.settle()
    world.end_pods()
    world.snapshot("evicted")


def failed(world: World) -> None:
    nodes(world, 1)
    daemon_set(world)
    turn(world, 1)
    world.settle()
    world.run_pods(phase="Failed", ready=False)
    world.settle()
    world.end_pods()
    world.snapshot("replaced")


def history(world: World) -> None:
    nodes(world, 1)
    daemon_set(world, revisionHistoryLimit=1)
    turn(world, 1)
    for image in ("j", "k", "l"):
        change_image(world, image)
        turn(world, 2)
    world.snapshot("all")


SCENARIOS = {
    f"daemon_set_{each.__name__}": each for each in (rolled, surged, half, on_delete, selected, failed, history)
}
