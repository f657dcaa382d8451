"""Claims of devices; the scenarios do what the scheduler does."""

from __future__ import annotations

from typing import Any

from tools.controllers.world import World

_SPEC: dict[str, Any] = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
_ALLOCATION: dict[str, Any] = {
    "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "d-0"}]}
}
_FINALIZER = "resource.kubernetes.io/delete-protection"


def template(world: World) -> None:
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    spec = {"metadata": metadata, "spec": _SPEC}
    world.create_from("resource.k8s.io/v1", "ResourceClaimTemplate", "t", spec)


def pod(world: World, name: str = "p", **spec: Any) -> None:
    claims = [{"name": "first", "resourceClaimTemplateName": "t"}]
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "first"}]}}
    given = {"resourceClaims": claims, "containers": [container], **spec}
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": given})


def allocate(world: World, name: str = "", pod_name: str = "") -> None:
    """Gives a claim a device, for a pod, as the scheduler does."""
    for each in world.list("ResourceClaim"):
        found = each["metadata"]["name"]
        if name not in ("", found):
            continue
        world.patch("ResourceClaim", found, {"metadata": {"finalizers": [_FINALIZER]}})
        status: dict[str, Any] = {"allocation": _ALLOCATION}
        if pod_name:
            uid = world.get("Pod", pod_name)["metadata"]["uid"]
            status["reservedFor"] = [{"resource": "pods", "name": pod_name, "uid": uid}]
        world.patch("ResourceClaim", found, {"status": status}, "status")


def made(world: World) -> None:
    template(world)
    pod(world)
    world.snapshot("made")
    allocate(world, pod_name="p")
    world.run_pods()
    world.snapshot("allocated")
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, "status")
    world.snapshot("given back")


def without_template(world: World) -> None:
    pod(world)
    world.snapshot("failed")
    template(world)
    world.snapshot("made")


def long_name(world: World) -> None:
    template(world)
    pod(world, "a-pod-with-a-name-that-is-so-long-that-the-prefix-has-to-be-cut")
    world.wait(1)
    world.settle()
    names = [each["metadata"]["generateName"] for each in world.list("ResourceClaim")]
    world.snapshots["names"] = names


def given_by_name(world: World) -> None:
    world.create_from("resource.k8s.io/v1", "ResourceClaim", "mine", _SPEC)
    claims = [{"name": "first", "resourceClaimName": "mine"}]
    pod(world, resourceClaims=claims)
    pod(world, "q", resourceClaims=claims)
    world.snapshot("made")
    allocate(world, "mine", "p")
    world.run_pods()
    world.snapshot("both")
    world.delete("Pod", "p", gracePeriodSeconds=0)
    world.snapshot("one")
    world.delete("Pod", "q", gracePeriodSeconds=0)
    world.snapshot("none")


def deleted_in_use(world: World) -> None:
    world.create_from("resource.k8s.io/v1", "ResourceClaim", "mine", _SPEC)
    allocate(world, "mine")
    world.snapshot("allocated")
    world.delete("ResourceClaim", "mine")
    world.snapshot("gone")


def tainted(world: World) -> None:
    """Pods whose device gets a taint are deleted."""
    world.create_from("resource.k8s.io/v1", "ResourceClaim", "mine", _SPEC)
    claims = [{"name": "first", "resourceClaimName": "mine"}]
    pod(world, resourceClaims=claims)
    pod(world, "q", resourceClaims=claims)
    allocate(world, "mine", "p")
    world.run_pods()
    world.snapshot("runs")
    taint = {"key": "broken", "effect": "NoExecute"}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "d-0", "taints": [taint]}]
    world.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{world.name}-slice"},
            "spec": {"driver": "d.example.com", "nodeName": "node-a", "pool": pool, "devices": devices},
        }
    )
    world.snapshot("evicted")


SCENARIOS = {
    f"resource_claim_{each.__name__}": each
    for each in (made, without_template, long_name, given_by_name, deleted_in_use, tainted)
}
