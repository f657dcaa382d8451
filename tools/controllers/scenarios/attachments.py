"""Volumes that are attached to nodes; the scenarios do what CSI drivers and kubelets do."""

from __future__ import annotations

from typing import Any

from tools.controllers.scenarios.volumes import claim, pod_spec, volume
from tools.controllers.world import World

_DRIVER = "d.example.com"


def node(world: World, name: str) -> str:
    """Makes a node whose volumes are attached by the controller; its name."""
    name = f"{world.name}-{name}"
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    world.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "annotations": annotations}})
    world.nodes.append(name)
    return name


def pod(world: World, name: str, on: str) -> None:
    """Makes a pod that uses the claim, on a node."""
    metadata = {"name": name}
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec("a", nodeName=on)})


def attach(world: World) -> None:
    """Says of all attachments that they have happened."""
    for each in mine(world):
        world.patch("VolumeAttachment", each["metadata"]["name"], {"status": {"attached": True}}, "status")


def mine(world: World) -> list[dict[str, Any]]:
    """The attachments of this scenario."""
    return [each for each in world.list("VolumeAttachment") if world.name in each["spec"]["nodeName"]]


def look(world: World, label: str, *nodes: str) -> None:
    """Keeps what there is, and what nodes say of their volumes."""
    world.wait(2)
    world.snapshot(label)
    for each in nodes:
        world.snapshots[f"{label}: {each}"] = world.get("Node", each)["status"].get("volumesAttached")


def bound_claim(world: World, **spec: Any) -> None:
    volume(world, "a", csi={"driver": _DRIVER, "volumeHandle": world.name}, **spec)
    world.settle()
    claim(world, **({"accessModes": spec["accessModes"]} if "accessModes" in spec else {}))
    world.settle()


def attached(world: World) -> None:
    bound_claim(world)
    first = node(world, "x")
    pod(world, "p", first)
    look(world, "asked for", first)
    attach(world)
    look(world, "attached", first)
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, "status")
    look(world, "detached", first)


def in_use(world: World) -> None:
    bound_claim(world)
    first = node(world, "x")
    pod(world, "p", first)
    world.wait(2)
    attach(world)
    world.wait(2)
    names = [f"kubernetes.io/csi/{_DRIVER}^{world.name}"]
    world.patch("Node", first, {"status": {"volumesInUse": names}}, "status")
    world.delete("Pod", "p", gracePeriodSeconds=0)
    look(world, "kept", first)
    world.patch("Node", first, {"status": {"volumesInUse": None}}, "status")
    look(world, "detached", first)


def elsewhere(world: World) -> None:
    bound_claim(world)
    first, second = node(world, "x"), node(world, "y")
    pod(world, "p", first)
    world.wait(2)
    attach(world)
    look(world, "attached", first)
    pod(world, "q", second)
    look(world, "not twice", first, second)
    world.delete("Pod", "p", gracePeriodSeconds=0)
    world.wait(2)
    attach(world)
    look(world, "moved", first, second)


def shared(world: World) -> None:
    bound_claim(world, accessModes=["ReadWriteMany"])
    first, second = node(world, "x"), node(world, "y")
    pod(world, "p", first)
    pod(world, "q", second)
    world.wait(2)
    attach(world)
    look(world, "attached", first, second)


def failing(world: World) -> None:
    bound_claim(world)
    first = node(world, "x")
    pod(world, "p", first)
    world.wait(2)
    for each in mine(world):
        error = {"attachError": {"message": "no such disk"}}
        world.patch("VolumeAttachment", each["metadata"]["name"], {"status": error}, "status")
    look(world, "failed", first)


def not_needed(world: World) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": f"{world.name}.example.com"}}
    world.create({**driver, "spec": {"attachRequired": False}})
    volume(world, "a", csi={"driver": f"{world.name}.example.com", "volumeHandle": world.name})
    world.settle()
    claim(world)
    world.settle()
    first = node(world, "x")
    pod(world, "p", first)
    look(world, "none", first)


SCENARIOS = {f"attachment_{each.__name__}": each for each in (attached, in_use, elsewhere, shared, failing, not_needed)}
