"""Scenarios of quota usage."""

from __future__ import annotations

from typing import Any

from tools.controllers.world import World


def quota(world: World, name: str, hard: dict[str, str], **spec: Any) -> None:
    world.create_from("v1", "ResourceQuota", name, {"hard": hard, **spec})


def pod(world: World, name: str, resources: dict[str, Any] | None = None, **spec: Any) -> None:
    containers = [{"name": "c", "image": "i", "resources": resources or {}}]
    world.create_from("v1", "Pod", name, {"containers": containers, **spec})


CPU = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}
COMPUTE = {
    "pods": "20",
    "count/pods": "30",
    "cpu": "10",
    "requests.memory": "100Gi",
    "limits.cpu": "20",
    "limits.memory": "1Ti",
    "requests.ephemeral-storage": "1Ti",
    "requests.example.com/gpu": "10",
    "hugepages-2Mi": "1Gi",
}


def computed(world: World) -> None:
    """Pods that are there, that end, that are deleted."""
    world.also("ResourceQuota")
    for name in ("a", "b", "c"):
        pod(world, name, CPU)
    pod(world, "gpu", {"limits": {**CPU["limits"], "example.com/gpu": "2", "ephemeral-storage": "1Gi"}})
    world.settle()
    quota(world, "q", COMPUTE)
    world.snapshot("counted")
    world.patch("Pod", "a", {"status": {"phase": "Succeeded"}}, "status")
    world.snapshot("ended")
    world.delete("Pod", "b", gracePeriodSeconds=0)
    world.snapshot("deleted")


def scoped(world: World) -> None:
    world.also("ResourceQuota")
    pod(world, "plain")
    pod(world, "ending", activeDeadlineSeconds=10, resources=CPU)
    near = [{"topologyKey": "k", "namespaces": ["other"], "labelSelector": {}}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    pod(world, "affine", affinity=affinity)
    world.settle()
    for scope in ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"):
        quota(world, scope.lower(), {"pods": "10"}, scopes=[scope])
    for operator, values in (("In", ["high"]), ("NotIn", ["high"]), ("Exists", []), ("DoesNotExist", [])):
        selector = {"scopeName": "PriorityClass", "operator": operator, "values": values}
        quota(world, f"class-{operator.lower()}", {"pods": "10"}, scopeSelector={"matchExpressions": [selector]})
    world.snapshot("scoped")
    world.patch("Pod", "plain", {"spec": {"activeDeadlineSeconds": 20}})
    world.snapshot("moved")


def counted(world: World) -> None:
    """Other objects, of any kind."""
    world.also("ResourceQuota")
    for name in ("a", "b"):
        world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        world.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
    for name, kind in (("x", "NodePort"), ("y", "LoadBalancer"), ("z", "ClusterIP")):
        world.create_from("v1", "Service", name, {"type": kind, "ports": [{"port": 1}]})
    for name, storage_class in (("fast", "fast"), ("slow", "")):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500M"}}}
        world.create_from("v1", "PersistentVolumeClaim", name, {**claim, "storageClassName": storage_class})
    world.settle()  # until the controllers have seen it all
    quota(
        world,
        "q",
        {
            "configmaps": "10",
            "count/configmaps": "10",
            "count/secrets": "10",
            "secrets": "5",
            "services": "10",
            "services.nodeports": "10",
            "services.loadbalancers": "5",
            "persistentvolumeclaims": "5",
            "requests.storage": "10Gi",
            "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "5",
            "count/deployments.apps": "3",
            "count/unknown.example.com": "3",
            "resourcequotas": "2",
            "example.com/nothing": "1",
        },
    )
    world.snapshot("counted")
    world.delete("ConfigMap", "a")
    world.delete("Secret", "b")
    world.delete("Service", "x")
    world.patch("Service", "y", {"spec": {"type": "ClusterIP"}})
    world.snapshot("given back")
    world.patch("ResourceQuota", "q", {"spec": {"hard": {"secrets": "7", "services": None, "count/jobs.batch": "3"}}})
    world.snapshot("changed")


def charged(world: World) -> None:
    """Charge objects that are created later, and refuse those beyond the quota."""
    world.also("ResourceQuota")
    quota(world, "q", {"pods": "3", "count/jobs.batch": "2", "count/replicasets.apps": "1"})
    world.settle()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    world.create_from("apps/v1", "ReplicaSet", "r", spec)
    world.snapshot("two")
    world.patch("ReplicaSet", "r", {"spec": {"replicas": 1}})
    world.settle()
    world.end_pods()
    world.snapshot("one")


SCENARIOS = {f"quotas_{each.__name__}": each for each in (computed, scoped, counted, charged)}
