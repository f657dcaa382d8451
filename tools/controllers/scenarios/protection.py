"""Scenarios of protection: claims, volumes and attributes classes stay while they are used."""

from __future__ import annotations

from tools.controllers.scenarios.volumes import claim, pod_spec, volume
from tools.controllers.world import World


def used_claim(world: World) -> None:
    claim(world)
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec("a", nodeName="n")})
    world.settle()
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("kept")
    world.delete("Pod", "p", gracePeriodSeconds=0)
    world.snapshot("gone")


def claim_of_ended_pod(world: World) -> None:
    claim(world)
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec("a", nodeName="n")})
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, "status")
    world.settle()
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("still kept")


def claim_of_unscheduled_pod(world: World) -> None:
    claim(world)
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec("a")})
    world.settle()
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("gone")


def bound_volume(world: World) -> None:
    name = volume(world, "a")
    world.settle()
    claim(world)
    world.settle()
    world.delete("PersistentVolume", name)
    world.snapshot("kept")
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("gone")


def finalizers_put_back(world: World) -> None:
    name = volume(world, "a")
    world.settle()
    claim(world)
    world.settle()
    world.patch("PersistentVolume", name, {"metadata": {"finalizers": None}})
    world.patch("PersistentVolumeClaim", "a", {"metadata": {"finalizers": None}})
    world.snapshot("put back")


def attributes_class(world: World) -> None:
    name = f"{world.name}-class"
    world.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttributesClass",
            "metadata": {"name": name},
            "driverName": "d.example.com",
            "parameters": {"a": "b"},
        }
    )
    claim(world, volumeAttributesClassName=name)
    world.snapshot("used")
    world.delete("VolumeAttributesClass", name)
    world.snapshot("kept")
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("gone")


SCENARIOS = {
    f"protection_{each.__name__}": each
    for each in (
        used_claim,
        claim_of_ended_pod,
        claim_of_unscheduled_pod,
        bound_volume,
        finalizers_put_back,
        attributes_class,
    )
}
