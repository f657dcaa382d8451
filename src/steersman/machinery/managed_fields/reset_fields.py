"""Which fields the strategies of the built-in resources reset (upstream's GetResetFields), for field ownership.

A resource resets its status; its status subresource resets the spec. What is different is listed below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from .filters import Filter, excluding

_WITH_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "services",
    ),
    "admissionregistration.k8s.io": ("validatingadmissionpolicies",),
    "apiextensions.k8s.io": ("customresourcedefinitions",),
    "apiregistration.k8s.io": ("apiservices",),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "certificates.k8s.io": ("certificatesigningrequests",),
    "flowcontrol.apiserver.k8s.io": ("flowschemas", "prioritylevelconfigurations"),
    "internal.apiserver.k8s.io": ("storageversions",),
    "networking.k8s.io": ("ingresses", "servicecidrs"),
    "policy": ("poddisruptionbudgets",),
    "resource.k8s.io": ("devicetaintrules", "resourceclaims", "resourcepoolstatusrequests"),
    "storage.k8s.io": ("volumeattachments",),
}

_METADATA_TOO: Final = (
    "apiservices",
    "devicetaintrules",
    "flowschemas",
    "prioritylevelconfigurations",
    "resourceclaims",
    "resourcepoolstatusrequests",
    "servicecidrs",
    "storageversions",
    "validatingadmissionpolicies",
    "volumeattachments",
)
"""Their status subresource resets the metadata with the spec."""

_SPECIAL: Final[Mapping[tuple[str, str], Filter]] = {
    ("certificatesigningrequests", ""): excluding("spec", "status"),
    ("certificatesigningrequests", "approval"): excluding("spec", "status/certificate"),
    ("certificatesigningrequests", "status"): excluding("spec", "status/conditions"),
    ("deployments", "status"): excluding("spec", "metadata/labels"),
    ("namespaces", "finalize"): excluding("status"),
    ("pods", "status"): excluding("spec", "metadata/deletionTimestamp", "metadata/ownerReferences"),
}


@lru_cache(maxsize=256)
def reset_filter(group: str, resource: str, subresource: str = "") -> Filter | None:
    """What is left of a write's fields, in any version of the group; None if all are."""
    if resource not in _WITH_STATUS.get(group, ()):
        return None
    special = _SPECIAL.get((resource, subresource))
    if special is not None:
        return special
    if not subresource:
        return excluding("status")
    if subresource != "status":
        return None
    return excluding("spec", "metadata") if resource in _METADATA_TOO else excluding("spec")


def resets_of(group: str, resource: str, subresource: str, versions: Iterable[str]) -> Mapping[str, Filter]:
    """`FieldManager.resets` of a built-in resource served in `versions` ("v1", "v2") of its group."""
    found = reset_filter(group, resource, subresource)
    if found is None:
        return {}
    return {f"{group}/{version}" if group else version: found for version in versions}
