"""Clusters in which a pod stays pending, each for another reason, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Plain = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
_WAITING_CLASS: Final = "waiting"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
    **spec: Any,
) -> Plain:
    """Return a ready node with a host name label."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "20Gi", **(more or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        },
    }


def pod(
    name: str = "new",
    *,
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Plain:
    """Return a pod with one container."""
    amounts = dict(requests or {})
    limits = {key: value for key, value in amounts.items() if "/" in key}
    container: Plain = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": amounts}}
    if limits:
        container["resources"]["limits"] = limits
    container |= spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels or {})},
        "spec": {"containers": [container], "automountServiceAccountToken": False, **spec},
    }


def _three(**each: Any) -> list[Plain]:
    return [node(f"node-{number}", labels={ZONE: f"zone-{number}"}, **each) for number in range(3)]


def _term(app: str, key: str = HOSTNAME) -> Plain:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def _near(app: str, key: str = HOSTNAME) -> Plain:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, key)]}}


def _far(app: str, key: str = HOSTNAME) -> Plain:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, key)]}}


def _wanted(*expressions: Plain, fields: list[Plain] | None = None) -> Plain:
    term = {"matchExpressions": list(expressions)} if fields is None else {"matchFields": fields}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _spread(key: str, skew: int = 1) -> list[Plain]:
    selector = {"matchLabels": {"app": "web"}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def _claim(name: str, *, storage_class: str, modes: str = "ReadWriteOnce", volume: str = "") -> Plain:
    spec: Plain = {
        "accessModes": [modes],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    metadata: Plain = {"name": name, "namespace": "default"}
    found: Plain = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    if volume:
        spec["volumeName"] = volume
        metadata["annotations"] = {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        found["status"] = {"phase": "Bound", "accessModes": [modes], "capacity": {"storage": "1Gi"}}
    return found


def _volume(name: str, claim: str, *, modes: str = "ReadWriteOnce", **more: Any) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": more.pop("labels", {})},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [modes],
            "storageClassName": "fast",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim},
            "csi": {"driver": "csi.example", "volumeHandle": name},
            **more,
        },
        "status": {"phase": "Bound"},
    }


def _class(name: str, mode: str) -> Plain:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner" if name == _WAITING_CLASS else "csi.example",
        "volumeBindingMode": mode,
    }


def _mounted(claim: str) -> Plain:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def _in_zone(zone: str) -> Plain:
    expressions = [{"key": ZONE, "operator": "In", "values": [zone]}]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}


def _priority(name: str, value: int) -> Plain:
    metadata = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}


def _csi_node(name: str, count: int) -> Plain:
    drivers = [{"name": "csi.example", "nodeID": name, "allocatable": {"count": count}}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def _devices(node_name: str, count: int) -> list[Plain]:
    api = "resource.k8s.io/v1"
    gpu_class = {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    devices = [{"name": f"gpu-{number}"} for number in range(count)]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example", "nodeName": node_name, "pool": pool, "devices": devices}
    slices = {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": f"{node_name}-gpus"}, "spec": spec}
    return [gpu_class, slices]


def _device_claim(count: int) -> Plain:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def _filled(count: int, **each: Any) -> list[Plain]:
    return [pod(f"old-{number}", nodeName=f"node-{number}", **each) for number in range(count)]


_GPU_TAINT: Final = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
_PORT: Final = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
_ONE_POD: Final = "ReadWriteOncePod"

CASES: Final[Mapping[str, tuple[list[Plain], Plain]]] = {
    "cpu": (_three() + _filled(3, requests={"cpu": "3"}), pod(requests={"cpu": "1300m"})),
    "cpu-never": (_three(), pod(requests={"cpu": "5"})),
    "memory": (_three() + _filled(2, requests={"memory": "7Gi"}), pod(requests={"memory": "7800Mi", "cpu": "5"})),
    "ephemeral-storage": (_three(), pod(requests={"ephemeral-storage": "30Gi"})),
    "extended-resource": (
        [*_three(), node("node-gpu", more={"example.com/gpu": "1"})],
        pod(requests={"example.com/gpu": "2"}),
    ),
    "pods": ([node("node-0", pods="1"), node("node-1", pods="1"), *_filled(2)], pod()),
    "taints": (_three(taints=[_GPU_TAINT]), pod()),
    "taints-and-cpu": (
        [*_three(taints=[_GPU_TAINT]), node("node-3", cpu="1"), node("node-4", cpu="1")],
        pod(requests={"cpu": "2"}),
    ),
    "unschedulable": (_three(unschedulable=True), pod()),
    "node-selector": (_three(), pod(nodeSelector={"disk": "ssd"})),
    "node-affinity": (
        [*_three(), node("node-old", labels={"generation": "3"})],
        pod(affinity=_wanted({"key": "generation", "operator": "Gt", "values": ["5"]})),
    ),
    "node-name": (
        _three(),
        pod(affinity=_wanted(fields=[{"key": "metadata.name", "operator": "In", "values": ["node-9"]}])),
    ),
    "anti-affinity": (_three() + _filled(3, labels={"app": "web"}), pod(labels={"app": "web"}, affinity=_far("web"))),
    "anti-affinity-of-others": (
        _three() + _filled(3, labels={"app": "db"}, affinity=_far("web")),
        pod(labels={"app": "web"}),
    ),
    "affinity": (_three(), pod(affinity=_near("cache"))),
    "affinity-and-cpu": (
        [*_three(), pod("cache", labels={"app": "cache"}, nodeName="node-0", requests={"cpu": "3500m"})],
        pod(affinity=_near("cache", ZONE), requests={"cpu": "1"}),
    ),
    "spread": (
        [
            *(node(f"node-{number}", labels={ZONE: f"zone-{number}"}) for number in range(2)),
            node("node-2", labels={ZONE: "zone-2"}, cpu="100m"),
            *_filled(2, labels={"app": "web"}),
        ],
        pod(labels={"app": "web"}, topologySpreadConstraints=_spread(ZONE), requests={"cpu": "500m"}),
    ),
    "spread-label-missing": (
        [node("node-0"), node("node-1")],
        pod(labels={"app": "web"}, topologySpreadConstraints=_spread(ZONE)),
    ),
    "ports": (_three() + _filled(3, container=_PORT), pod(container=_PORT)),
    "preemption": (
        [_priority("high", 1000), *_three(), *_filled(3, requests={"cpu": "3"})],
        pod(requests={"cpu": "2"}, priorityClassName="high"),
    ),
    "preemption-never": (
        [{**_priority("polite", 1000), "preemptionPolicy": "Never"}, *_three(), *_filled(3, requests={"cpu": "3"})],
        pod(requests={"cpu": "2"}, priorityClassName="polite"),
    ),
    "preemption-not-helpful": (
        [_priority("high", 1000), *_three(taints=[_GPU_TAINT]), node("node-3", cpu="1")],
        pod(requests={"cpu": "2"}, priorityClassName="high"),
    ),
    "claim-missing": (_three(), pod(**_mounted("nowhere"))),
    "claim-unbound": (
        [*_three(), _class("fast", "Immediate"), _claim("data", storage_class="fast")],
        pod(**_mounted("data")),
    ),
    "claim-waits": (
        [
            *_three(),
            _class(_WAITING_CLASS, "WaitForFirstConsumer"),
            _claim("data", storage_class=_WAITING_CLASS),
        ],
        pod(**_mounted("data")),
    ),
    "volume-zone": (
        [
            *_three(cpu="1"),
            _claim("data", storage_class="fast", volume="disk"),
            _volume("disk", "data", labels={ZONE: "zone-9"}),
        ],
        pod(**_mounted("data")),
    ),
    "volume-affinity": (
        [
            *_three(),
            _claim("data", storage_class="fast", volume="disk"),
            _volume("disk", "data", **_in_zone("zone-1")),
            pod("old", nodeName="node-1", requests={"cpu": "3500m"}),
        ],
        pod(**_mounted("data"), requests={"cpu": "1"}),
    ),
    "volume-limits": (
        [
            node("node-0"),
            _csi_node("node-0", 1),
            _claim("data", storage_class="fast", volume="disk"),
            _volume("disk", "data"),
            _claim("other", storage_class="fast", volume="other-disk"),
            _volume("other-disk", "other"),
            pod("old", nodeName="node-0", **_mounted("other")),
        ],
        pod(**_mounted("data")),
    ),
    "volume-in-use": (
        [
            *_three(),
            _claim("data", storage_class="fast", volume="disk", modes=_ONE_POD),
            _volume("disk", "data", modes=_ONE_POD),
            pod("old", nodeName="node-0", **_mounted("data")),
        ],
        pod(**_mounted("data")),
    ),
    "gates": (_three(), pod(schedulingGates=[{"name": "example.com/quota"}])),
    "devices": (
        [*_three(), *_devices("node-1", 1), _device_claim(2)],
        pod(resourceClaims=[{"name": "gpus", "resourceClaimName": "gpus"}]),
    ),
    "device-class-missing": (
        [*_three(), _device_claim(1)],
        pod(resourceClaims=[{"name": "gpus", "resourceClaimName": "gpus"}]),
    ),
}
"""Objects in the order in which they are created, and the pod that stays pending."""
