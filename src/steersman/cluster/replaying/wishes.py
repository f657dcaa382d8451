"""Wishes of users in recorded objects, without what servers and controllers have filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.nodes.node_set import SIMULATED

Plain = dict[str, Any]

_OF_CONTROLLERS: Final = frozenset(
    {
        "APIService",
        "CertificateSigningRequest",
        "ControllerRevision",
        "CSINode",
        "Endpoints",
        "EndpointSlice",
        "Event",
        "IPAddress",
        "Lease",
        "VolumeAttachment",
    }
)
"""Kinds whose objects controllers and servers make."""
_CONTROLLERS: Final = frozenset(
    {
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "Node",
        "NodePool",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    }
)
"""Kinds of owners whose objects the simulated cluster makes."""
_MADE_NAMES: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
_NOT_WISHED: Final = (
    "deployment.kubernetes.io/",
    "pv.kubernetes.io/",
    "endpoints.kubernetes.io/",
    "batch.kubernetes.io/job-",
)
"""Prefixes of annotations that controllers set."""
_OF_JOBS: Final = frozenset(
    {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
)
_TOKEN: Final = "kube-api-access-"
"""Prefix of the volumes that admission adds."""
_OF_NODES: Final = "node.kubernetes.io/"
"""Prefix of taints that controllers set."""


def is_of_user(obj: Plain) -> bool:
    """Return True if a user or a program outside of the simulated cluster has made an object."""
    metadata = obj["metadata"]
    if obj["kind"] in _OF_CONTROLLERS or (obj["kind"], metadata["name"]) in _MADE_NAMES:
        return False
    return not any(
        isinstance(each, dict) and each.get("controller") and each.get("kind") in _CONTROLLERS
        for each in metadata.get("ownerReferences") or ()
    )


def wish(obj: Plain) -> Plain:
    """Return the part of an object that a user wrote, as far as that can be told. The object is not changed."""
    metadata = obj["metadata"]
    kept: Plain = {name: metadata[name] for name in ("name", "namespace", "labels") if metadata.get(name)}
    annotations = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if not name.startswith(_NOT_WISHED)
    }
    if annotations:
        kept["annotations"] = annotations
    found = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    found["metadata"] = kept
    change = _CHANGES.get(obj["kind"])
    if change is not None:
        if isinstance(obj.get("spec"), dict):
            found["spec"] = dict(obj["spec"])
        change(found, obj)
    return found


def _of_pod(found: Plain, obj: Plain) -> None:
    spec = found.get("spec") or {}
    _drop(spec, "nodeName", "priority", "preemptionPolicy", "serviceAccount", "enableServiceLinks")
    volumes = [each for each in spec.get("volumes") or () if not str(each.get("name")).startswith(_TOKEN)]
    spec["volumes"] = volumes
    for name in ("containers", "initContainers"):
        if spec.get(name):
            spec[name] = [_without_token(each) for each in spec[name]]
    tolerations = [each for each in spec.get("tolerations") or () if each.get("tolerationSeconds") != 300]
    spec["tolerations"] = tolerations


def _without_token(container: Plain) -> Plain:
    mounts = [each for each in container.get("volumeMounts") or () if not str(each.get("name")).startswith(_TOKEN)]
    return {**container, "volumeMounts": mounts}


def _of_service(found: Plain, obj: Plain) -> None:
    spec = found.get("spec") or {}
    if spec.get("clusterIP") != "None":
        _drop(spec, "clusterIP", "clusterIPs")
    _drop(spec, "ipFamilies", "healthCheckNodePort")
    spec["ports"] = [
        {name: value for name, value in each.items() if name != "nodePort"} for each in spec.get("ports") or ()
    ]


def _of_claim(found: Plain, obj: Plain) -> None:
    _drop(found.get("spec") or {}, "volumeName")


def _of_job(found: Plain, obj: Plain) -> None:
    spec = found.get("spec") or {}
    if spec.get("manualSelector"):
        return
    _drop(spec, "selector")
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("metadata"), dict):
        labels = {
            name: value for name, value in (template["metadata"].get("labels") or {}).items() if name not in _OF_JOBS
        }
        spec["template"] = {**template, "metadata": {**template["metadata"], "labels": labels}}
    labels = found["metadata"].get("labels")
    if labels:
        found["metadata"]["labels"] = {name: value for name, value in labels.items() if name not in _OF_JOBS}


def _of_node(found: Plain, obj: Plain) -> None:
    spec, status = found.get("spec") or {}, obj.get("status") or {}
    _drop(spec, "podCIDR", "podCIDRs")
    if spec.get("taints"):
        spec["taints"] = [each for each in spec["taints"] if not str(each.get("key")).startswith(_OF_NODES)]
    found["metadata"]["annotations"] = {**found["metadata"].get("annotations", {}), SIMULATED: "true"}
    architecture = (status.get("nodeInfo") or {}).get("architecture", "")
    found["status"] = {
        **{name: status[name] for name in ("capacity", "allocatable") if status.get(name)},
        "nodeInfo": {"architecture": architecture},
    }


_CHANGES: Final[Mapping[str, Callable[[Plain, Plain], None]]] = {
    "Job": _of_job,
    "Node": _of_node,
    "PersistentVolumeClaim": _of_claim,
    "Pod": _of_pod,
    "Service": _of_service,
}


def _drop(spec: Plain, *names: str) -> None:
    for each in names:
        spec.pop(each, None)


def difference(old: Plain, new: Plain) -> Plain:
    """Return the JSON merge patch that makes `new` of `old`, empty if they are equal."""
    patch: Plain = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := difference(before, value):
                patch[name] = inner
        elif name not in old or before != value:
            patch[name] = value
    return patch
