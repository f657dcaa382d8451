"""HorizontalPodAutoscalers. Both sides look at them every four seconds, and look back eight before they scale down:
kube-controller-manager takes `--horizontal-pod-autoscaler-sync-period=4s
--horizontal-pod-autoscaler-downscale-stabilization=8s`. The metrics are those that a simulated cluster serves, so the
reference's API server is `python -m tools.controllers.ours --controllers=`.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from typing import Any, Final

from tools.controllers.scenarios.replica_sets import LABELS
from tools.controllers.world import World

Plain = dict[str, Any]

_PERIOD: Final = 4.0
_CPU: Final = "simulation.steersman.dev/cpu"
_MEMORY: Final = "simulation.steersman.dev/memory"
_POD: Final = re.compile(r"\bt-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_AUTOSCALERS: Final = re.compile(r"(?<=multiple HPAs: \[)[^\]]*")
_METRIC: Final = "metrics.simulation.steersman.dev/"


def target(world: World, replicas: int = 2, *, kind: str = "ReplicaSet", **requests: str) -> None:
    """Create the scaled object: its containers request 100m and 64Mi unless `requests` says otherwise."""
    wanted = requests or {"cpu": "100m", "memory": "64Mi"}
    containers = [
        {"name": "c", "image": "i", "resources": {"requests": wanted}},
        {"name": "side", "image": "i", "resources": {"requests": wanted}},
    ]
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}
    selector: Plain = LABELS if kind == "ReplicationController" else {"matchLabels": LABELS}
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    world.create_from(version, kind, "t", {"replicas": replicas, "selector": selector, "template": template})
    world.settle()


def hpa(world: World, *metrics: Plain, name: str = "h", kind: str = "ReplicaSet", **spec: Any) -> None:
    """Scales what `target` makes."""
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    fields = {
        "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": "t"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": list(metrics),
        **spec,
    }
    world.create_from("autoscaling/v2", "HorizontalPodAutoscaler", name, fields)


def resource(percentage: int, name: str = "cpu") -> Plain:
    return {
        "type": "Resource",
        "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": percentage}},
    }


def amount(value: str, name: str) -> Plain:
    return {"type": "Resource", "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": value}}}


def container(percentage: int, name: str) -> Plain:
    wanted = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": name, "target": wanted}}


def pods(name: str, value: str, **metric: Any) -> Plain:
    wanted = {"type": "AverageValue", "averageValue": value}
    return {"type": "Pods", "pods": {"metric": {"name": name, **metric}, "target": wanted}}


def of_object(name: str, wanted: Plain, described: Plain, **metric: Any) -> Plain:
    return {
        "type": "Object",
        "object": {"metric": {"name": name, **metric}, "target": wanted, "describedObject": described},
    }


def external(name: str, wanted: Plain, **metric: Any) -> Plain:
    return {"type": "External", "external": {"metric": {"name": name, **metric}, "target": wanted}}


VALUE: Final = {"type": "Value", "value": "10"}
AVERAGE: Final = {"type": "AverageValue", "averageValue": "5"}
ITSELF: Final = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "t"}


def run(world: World, *, seconds_ago: int = 100, ready: bool = True, **options: Any) -> None:
    """Lets pods run since then."""
    since = datetime.fromtimestamp(time.time() - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    running = {
        "ready": ready,
        "image": "i",
        "imageID": "",
        "restartCount": 0,
        "state": {"running": {"startedAt": since}},
    }
    statuses = [{"name": name, **running} for name in ("c", "side")]
    status = {"startTime": since, "containerStatuses": statuses}
    world.run_pods(seconds_ago=seconds_ago - 20, ready=ready, status=status, **options)


def annotate(world: World, **annotations: str | None) -> None:
    """Puts annotations on all pods: `cpu`, `memory`, others are metrics."""
    keys = {"cpu": _CPU, "memory": _MEMORY}
    given = {keys.get(name, _METRIC + name): value for name, value in annotations.items()}
    for pod in world.list("Pod"):
        world.patch("Pod", pod["metadata"]["name"], {"metadata": {"annotations": given}})


def look(world: World, label: str, periods: float = 2.5) -> None:
    """Keeps what there is after an autoscaler was looked at more than once. How often it told of the same does not
    matter, nor in which order it names others."""
    world.wait(periods * _PERIOD)
    world.snapshot(label)
    text = _POD.sub("t-*", json.dumps(world.snapshots[label]))
    seen = json.loads(_AUTOSCALERS.sub(lambda found: " ".join(sorted(found[0].split(" "))), text))
    if "Event" in seen:
        told = {json.dumps({**each, "count": None}, sort_keys=True) for each in seen["Event"]}
        seen["Event"] = [json.loads(each) for each in sorted(told)]
    world.snapshots[label] = seen


def utilization(world: World) -> None:
    target(world)
    run(world)
    annotate(world, cpu="90m")
    hpa(world, resource(50))
    look(world, "up")
    run(world, seconds_ago=400)
    annotate(world, cpu="50m")
    look(world, "enough")
    annotate(world, cpu="20m")
    look(world, "down", 5)
    world.end_pods()
    look(world, "ended")


def bounds(world: World) -> None:
    target(world, 5)
    run(world)
    annotate(world, cpu="100m")
    hpa(world, resource(1), maxReplicas=3)
    look(world, "too many")
    world.patch("HorizontalPodAutoscaler", "h", {"spec": {"minReplicas": 4, "maxReplicas": 6}})
    look(world, "below the minimum")
    annotate(world, cpu="0")
    run(world)
    look(world, "too few", 5)
    world.patch("ReplicaSet", "t", {"spec": {"replicas": 0}})
    look(world, "disabled")


def fast(world: World) -> None:
    target(world, 1)
    run(world)
    annotate(world, cpu="100m")
    hpa(world, resource(5), maxReplicas=30)
    look(world, "at most four")


def no_target(world: World) -> None:
    hpa(world, resource(50))
    hpa(world, resource(50), name="kind", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Whale", "name": "t"})
    hpa(world, resource(50), name="group", scaleTargetRef={"apiVersion": "e.x/v1", "kind": "Deployment", "name": "t"})
    hpa(world, resource(50), name="no-scale", scaleTargetRef={"apiVersion": "v1", "kind": "Pod", "name": "t"})
    look(world, "none")


def no_usage(world: World) -> None:
    target(world)
    hpa(world, resource(50))
    look(world, "pending")
    run(world, seconds_ago=100, ready=False)
    look(world, "not ready")


def no_requests(world: World) -> None:
    target(world, memory="1Gi")
    run(world)
    annotate(world, cpu="10m")
    hpa(world, resource(50), container(50, "c"), container(50, "other"))
    look(world, "none")


def missing(world: World) -> None:
    target(world, 5)
    run(world, count=2)
    annotate(world, cpu="100m")
    hpa(world, resource(60))
    look(world, "up, two are pending")


def missing_down(world: World) -> None:
    target(world, 5)
    run(world, count=3)
    world.run_pods()
    annotate(world, cpu="20m")
    hpa(world, resource(60))
    look(world, "of one nothing is known", 5)


def amounts(world: World) -> None:
    target(world)
    run(world)
    annotate(world, cpu="250m", memory="100Mi")
    hpa(world, amount("100Mi", "memory"), amount("300m", "cpu"), container(300, "side"), maxReplicas=5)
    look(world, "up")


def ambiguous(world: World) -> None:
    target(world)
    run(world)
    hpa(world, resource(50))
    hpa(world, resource(60), name="second")
    look(world, "both", 4)


def rates(world: World) -> None:
    target(world)
    run(world)
    annotate(world, cpu="100m")
    policy = {"type": "Pods", "value": 1, "periodSeconds": 600}
    up = {"stabilizationWindowSeconds": 0, "policies": [policy], "selectPolicy": "Max"}
    hpa(world, resource(50), behavior={"scaleUp": up, "scaleDown": {"selectPolicy": "Disabled"}})
    look(world, "one more")
    run(world)
    annotate(world, cpu="100m")
    look(world, "no more")
    annotate(world, cpu="1m")
    look(world, "never down", 5)


def rates_down(world: World) -> None:
    target(world, 5)
    run(world)
    annotate(world, cpu="10m")
    policy = {"type": "Percent", "value": 50, "periodSeconds": 60}
    hpa(world, resource(50), behavior={"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [policy]}})
    look(world, "by a half")
    world.end_pods()
    look(world, "no further")


def tolerance(world: World) -> None:
    target(world)
    run(world)
    annotate(world, cpu="65m")
    hpa(world, resource(50), behavior={"scaleUp": {"tolerance": "500m"}})
    look(world, "within")
    world.patch("HorizontalPodAutoscaler", "h", {"spec": {"behavior": {"scaleUp": {"tolerance": "0"}}}})
    look(world, "beyond")


def of_pods(world: World) -> None:
    target(world)
    hpa(world, pods("requests", "10"))
    run(world)
    look(world, "none")
    annotate(world, requests="15500m")
    look(world, "up")
    labels = {"matchLabels": {"zone": "a"}}
    world.patch("HorizontalPodAutoscaler", "h", {"spec": {"metrics": [pods("requests", "10", selector=labels)]}})
    look(world, "of other labels")


def of_objects(world: World) -> None:
    target(world)
    run(world)
    unknown = {"apiVersion": "e.x/v1", "kind": "Whale", "name": "t"}
    space = {"apiVersion": "v1", "kind": "Namespace", "name": "t"}
    hpa(
        world,
        of_object("hits", VALUE, ITSELF),
        of_object("hits", AVERAGE, ITSELF),
        of_object("hits", VALUE, unknown),
        of_object("hits", AVERAGE, space, selector={"matchLabels": {"b": "1"}}),
    )
    look(world, "none")
    world.patch("ReplicaSet", "t", {"metadata": {"annotations": {f"{_METRIC}hits": "25"}}})
    look(world, "up")


def of_one_object(world: World) -> None:
    target(world)
    run(world)
    world.patch("ReplicaSet", "t", {"metadata": {"annotations": {f"{_METRIC}hits": "17"}}})
    hpa(world, of_object("hits", AVERAGE, ITSELF))
    look(world, "up")
    world.patch("ReplicaSet", "t", {"metadata": {"annotations": {f"{_METRIC}hits": "3"}}})
    look(world, "down", 5)


def from_outside(world: World) -> None:
    target(world)
    run(world)
    labels = {"matchLabels": {"queue": "mail"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    hpa(world, external("tasks", VALUE), external("tasks", AVERAGE, selector=labels))
    look(world, "none")
    data = {"tasks": "queue=mail,zone=a 12\nqueue=mail,zone=b 7\nqueue=other 3"}
    world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "external-metrics"}, "data": data})
    look(world, "up")


def some_fail(world: World) -> None:
    target(world)
    run(world)
    annotate(world, cpu="100m")
    hpa(world, pods("nothing", "10"), resource(50))
    look(world, "up all the same")
    annotate(world, cpu="10m")
    run(world)
    look(world, "not down", 5)


def deployment(world: World) -> None:
    target(world, kind="Deployment")
    run(world)
    annotate(world, cpu="90m")
    hpa(world, resource(50), kind="Deployment")
    look(world, "up")


def replication_controller(world: World) -> None:
    target(world, kind="ReplicationController")
    run(world)
    annotate(world, cpu="90m")
    hpa(world, resource(50), kind="ReplicationController")
    look(world, "up")


SCENARIOS = {
    f"autoscaler_{each.__name__}": each
    for each in (
        utilization,
        bounds,
        fast,
        no_target,
        no_usage,
        no_requests,
        missing,
        missing_down,
        amounts,
        ambiguous,
        rates,
        rates_down,
        tolerance,
        of_pods,
        of_objects,
        of_one_object,
        from_outside,
        some_fail,
        deployment,
        replication_controller,
    )
}
