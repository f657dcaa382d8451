"""Objects as the kubelets and controllers of a real cluster of an older release have written them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

BEGUN: Final = "2026-11-20T08:00:00Z"
NODE: Final = "ip-10-0-0-7"
ADDRESS: Final = "10.0.0.7"


def metadata(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    found = {"name": name, "uid": f"u-{namespace}-{name}", "resourceVersion": "7", "creationTimestamp": BEGUN, **more}
    return {**found, "namespace": namespace} if namespace else found


def owner(kind: str, name: str, namespace: str = "default", version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"u-{namespace}-{name}", "controller": True}


def node(name: str = NODE, address: str = ADDRESS, *, ready: bool = True) -> dict[str, Any]:
    names = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    states = ("False", "False", "False", "True" if ready else "Unknown")
    conditions = [
        {"type": type_, "status": status, "lastHeartbeatTime": BEGUN, "lastTransitionTime": BEGUN, "reason": "Known"}
        for type_, status in zip(names, states, strict=True)
    ]
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, labels={"kubernetes.io/hostname": name, "kubernetes.io/arch": "arm64"}),
        "spec": {
            "providerID": f"cloud:///{name}",
            "podCIDR": "10.244.3.0/24",
            **({} if ready else {"taints": [taint]}),
        },
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "58"},
            "allocatable": {"cpu": "15800m", "memory": "62Gi", "pods": "58"},
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "ExternalIP", "address": "192.0.2.7"}],
            "nodeInfo": {"osImage": "Bottlerocket", "kubeletVersion": "v1.34.2", "architecture": "arm64"},
        },
    }


def pod(name: str, *, status: dict[str, Any] | None = None, ip: str = "10.244.3.9", **more: Any) -> dict[str, Any]:
    """Return a pod whose container has restarted three times; `status` changes that of the container."""
    container = {
        "name": "main",
        "image": "registry.example.com/app:v1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "sleep 1; exit 1"],  # it did something else in its image
        "livenessProbe": {"exec": {"command": ["sh", "-c", "exit 1"]}, "periodSeconds": 1, "failureThreshold": 1},
        "readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {"requests": {"cpu": "100m"}},
    }
    of_container = {
        "name": "main",
        "ready": True,
        "started": True,
        "restartCount": 3,
        "image": "registry.example.com/app:v1",
        "imageID": "registry.example.com/app@sha256:11",
        "containerID": f"containerd://{name}",
        "state": {"running": {"startedAt": BEGUN}},
        "lastState": {"terminated": {"exitCode": 2, "startedAt": BEGUN, "finishedAt": BEGUN}},
        **(status or {}),
    }
    good = "True" if of_container["ready"] else "False"
    ready = {"Initialized": "True", "Ready": good, "ContainersReady": good, "PodScheduled": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, "default", labels={"app": "web"}, **more),
        "spec": {
            "nodeName": NODE,
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": type_, "status": state, "lastTransitionTime": BEGUN} for type_, state in ready.items()
            ],
            "hostIP": ADDRESS,
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "startTime": BEGUN,
            "qosClass": "Burstable",
            "containerStatuses": [of_container],
        },
    }


def replica_set(replicas: int = 1) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]}
    del template["spec"]["nodeName"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata("web", "default", generation=1),
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"replicas": replicas, "readyReplicas": replicas, "observedGeneration": 1},
    }


def service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata("web", "default"),
        "spec": {
            "clusterIP": "10.96.3.4",
            "clusterIPs": ["10.96.3.4"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}],
            "selector": {"app": "web"},
            "type": "ClusterIP",
        },
    }


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata("gadgets.example.com"),
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [version],
            "conversion": {"strategy": "None"},
        },
    }


def gadget() -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata("g", "default"), "size": 3}


def written(folder: Path, *objects: dict[str, Any]) -> Path:
    """Write a dump of these objects, and return its file."""
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file
