"""Pods that the controllers of workloads would create."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from steersman.authentication.user import UserInfo
from steersman.check.documents import Document, mapping

_WORKLOADS: Final = {
    ("apps", "Deployment"): ("replicaset-controller", "replicas"),
    ("apps", "ReplicaSet"): ("replicaset-controller", "replicas"),
    ("apps", "StatefulSet"): ("statefulset-controller", "replicas"),
    ("apps", "DaemonSet"): ("daemon-set-controller", ""),
    ("", "ReplicationController"): ("replication-controller", "replicas"),
    ("batch", "Job"): ("job-controller", "parallelism"),
    ("batch", "CronJob"): ("job-controller", "parallelism"),
}
"""Controllers of workloads, and the fields with the number of their pods."""
_MOST_PODS: Final = 1_000
"""Pods of a workload that are tried against a quota."""
_GROUPS: Final = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")


class Pods(Struct, frozen=True):
    """Pods of a workload: the path to their template, the number of them, and the user who creates them."""

    path: str
    template: dict[str, Any]
    number: int
    user: UserInfo

    def pod(self, document: Document, namespace: str, index: int) -> dict[str, Any]:
        """Return a pod. It has no generated name, so that messages are the same each time."""
        metadata = mapping(self.template.get("metadata"))
        kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers") if key in metadata}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**kept, "name": f"{document.name}-{index}", "namespace": namespace},
            "spec": self.template.get("spec"),
        }


def pod_template(document: Document) -> tuple[str, dict[str, Any]] | None:
    """Return the path to the pod template of a workload, and the template; None for every other object."""
    if (document.group, document.kind) not in _WORKLOADS:
        return None
    spec, path = mapping(document.plain.get("spec")), "spec"
    if document.kind == "CronJob":
        spec, path = mapping(mapping(spec.get("jobTemplate")).get("spec")), "spec.jobTemplate.spec"
    template = spec.get("template")
    return (f"{path}.template", template) if isinstance(template, dict) else None


def pods_of(document: Document) -> Pods | None:
    """Return the pods of a workload; None for every other object, and for one that wants none."""
    found = pod_template(document)
    if found is None:
        return None
    path, template = found
    controller, field = _WORKLOADS[document.group, document.kind]
    spec = mapping(document.plain.get("spec"))
    if document.kind == "CronJob":
        spec = mapping(mapping(spec.get("jobTemplate")).get("spec"))
    number = spec.get(field, 1)
    if not isinstance(number, int) or number < 1:
        return None
    user = UserInfo(f"system:serviceaccount:kube-system:{controller}", groups=_GROUPS)
    return Pods(path, template, min(number, _MOST_PODS), user)
