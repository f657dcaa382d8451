"""Deployments."""

from __future__ import annotations

from typing import Any

from tools.controllers.scenarios.replica_sets import LABELS, template
from tools.controllers.world import World


def deployment(world: World, replicas: int = 3, **spec: Any) -> None:
    given = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    world.create_from("apps/v1", "Deployment", "d", given, annotations={"note": "first"}, labels={"own": "label"})


def change_image(world: World, image: str) -> None:
    change = {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}
    world.patch("Deployment", "d", {"spec": change})


def turn(world: World, times: int, *, label: str = "") -> None:
    """Runs pods and lets others end, so often."""
    for number in range(times):
        world.settle()
        world.run_pods()
        world.end_pods()
        if label:
            world.snapshot(f"{label} {number}")


def rolled(world: World) -> None:
    deployment(world)
    world.snapshot("made")
    turn(world, 1)
    world.snapshot("run")
    change_image(world, "j")
    world.snapshot("changed")
    turn(world, 4, label="step")
    world.patch("Deployment", "d", {"metadata": {"annotations": {"note": "third", "more": "x"}}})
    change_image(world, "i")
    turn(world, 5)
    world.snapshot("back")


def hashed(world: World) -> None:
    """Many fields, for the hash."""
    probe = {"httpGet": {"path": "/", "port": "web", "httpHeaders": [{"name": "a", "value": "b"}]}, "periodSeconds": 3}
    container = {
        "name": "c",
        "image": "i",
        "command": ["a", "b c"],
        "args": ["x"],
        "env": [{"name": "A", "value": "b"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "web", "containerPort": 80}],
        "livenessProbe": probe,
        "readinessProbe": {"tcpSocket": {"port": 80}},
        "startupProbe": {"grpc": {"port": 80, "service": "s"}},
        "resources": {
            "requests": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "1e9", "example.com/x": "3"},
            "limits": {"cpu": "1500m", "memory": "100Mi", "ephemeral-storage": "300Ti", "example.com/x": "3"},
        },
        "lifecycle": {"preStop": {"exec": {"command": ["s"]}}},
        "securityContext": {"runAsUser": 5, "runAsNonRoot": True, "capabilities": {"add": ["A"], "drop": ["ALL"]}},
        "volumeMounts": [{"name": "e", "mountPath": "/e"}],
        "envFrom": [{"configMapRef": {"name": "cm"}}],
    }
    container["resources"]["requests"]["memory"] = "64Mi"  # type: ignore[index]
    spec = {
        "containers": [container],
        "initContainers": [{"name": "init", "image": "x", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "e", "emptyDir": {"sizeLimit": "0"}},
            {"name": "s", "secret": {"secretName": "s", "defaultMode": 256}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 900}}]}},
        ],
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 3, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}
                ]
            }
        },
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        "nodeSelector": {"b": "c", "a": "d"},
        "securityContext": {"fsGroup": 7},
        "hostAliases": [{"ip": "1.2.3.4"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "z",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": LABELS},
            }
        ],
        "dnsConfig": {"options": [{"name": "o"}]},
        "imagePullSecrets": [{"name": "p"}],
        "terminationGracePeriodSeconds": 0,
    }
    metadata = {"labels": {**LABELS, "z": "1", "B": "2"}, "annotations": {"x": "é <&>"}}
    deployment(world, 0, template={"metadata": metadata, "spec": spec})
    world.snapshot("made")


def absolute(world: World) -> None:
    """Surge and no unavailable pods; pods that never get ready."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    deployment(world, 3, strategy=strategy, minReadySeconds=1)
    turn(world, 1)
    world.wait(1.2)
    world.snapshot("run")
    change_image(world, "broken")
    world.settle()
    world.run_pods(ready=False, where=lambda pod: pod["spec"]["containers"][0]["image"] == "broken")
    world.snapshot("stuck")
    change_image(world, "better")
    world.snapshot("replaced")


def proportional(world: World) -> None:
    """A scale in the middle of a rollout."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    deployment(world, 10, strategy=strategy)
    turn(world, 1)
    change_image(world, "j")
    world.snapshot("rolling")
    world.patch("Deployment", "d", {"spec": {"replicas": 15}})
    world.snapshot("up")
    world.patch("Deployment", "d", {"spec": {"replicas": 4}})
    world.settle()
    world.end_pods()
    world.snapshot("down")
    world.patch("Deployment", "d", {"spec": {"replicas": 0}})
    world.settle()
    world.end_pods()
    world.snapshot("zero")


def paused(world: World) -> None:
    deployment(world, 2)
    turn(world, 1)
    world.patch("Deployment", "d", {"spec": {"paused": True}})
    world.snapshot("paused")
    change_image(world, "j")
    world.patch("Deployment", "d", {"spec": {"replicas": 4}})
    world.snapshot("changed")
    world.run_pods()
    world.snapshot("scaled")
    world.patch("Deployment", "d", {"spec": {"paused": False}})
    world.snapshot("resumed")
    turn(world, 4)
    world.snapshot("done")


def recreated(world: World) -> None:
    deployment(world, 2, strategy={"type": "Recreate"})
    turn(world, 1)
    world.snapshot("run")
    change_image(world, "j")
    world.snapshot("ending")
    turn(world, 2, label="step")


def timed_out(world: World) -> None:
    deployment(world, 1, progressDeadlineSeconds=2, minReadySeconds=0)
    world.settle()
    world.wait(3.5)
    world.snapshot("timed out")
    world.run_pods()
    world.snapshot("after all")


def history(world: World) -> None:
    deployment(world, 1, revisionHistoryLimit=1)
    turn(world, 1)
    for image in ("j", "k", "l"):
        change_image(world, image)
        turn(world, 3)
    world.snapshot("all")
    world.patch("Deployment", "d", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "3"}}})
    turn(world, 3)
    world.snapshot("back")
    world.patch("Deployment", "d", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "77"}}})
    world.snapshot("not found")
    world.patch("Deployment", "d", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "5"}}})
    world.snapshot("the same")


def collided(world: World) -> None:
    """The name of the ReplicaSet is taken by another that the Deployment does not own."""
    deployment(world, 1)
    found = world.settle()["ReplicaSet"][0]
    world.delete("Deployment", "d", propagationPolicy="Orphan")
    world.delete("ReplicaSet", found["metadata"]["name"], propagationPolicy="Background")
    name = found["metadata"]["name"]
    taken = {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": template({"x": "y"})}
    world.settle()
    for kind in ("Deployment", "ReplicaSet"):
        for each in world.list(kind):
            world.patch(kind, each["metadata"]["name"], {"metadata": {"finalizers": None}})
    world.create_from("apps/v1", "ReplicaSet", name, taken)
    world.wait(0.3)
    deployment(world, 1)
    world.snapshot("collided")


def adopted(world: World) -> None:
    selector = {"matchLabels": LABELS}
    world.create_from(
        "apps/v1", "ReplicaSet", "own", {"replicas": 1, "selector": selector, "template": template()}, labels=LABELS
    )
    world.settle()
    deployment(world, 2)
    world.snapshot("adopted")
    world.patch("ReplicaSet", "own", {"metadata": {"labels": {"app": "other"}}})
    world.snapshot("released")


SCENARIOS = {
    f"deployment_{each.__name__}": each
    for each in (rolled, hashed, absolute, proportional, paused, recreated, timed_out, history, collided, adopted)
}
