"""The built-in group versions in order of priority, as their APIServices have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GroupVersionPriority:
    """A served group version; higher priorities come first, versions of one group by `version_priority`."""

    group: str
    version: str
    group_priority: int
    version_priority: int = 15


GROUP_VERSIONS: Final = (
    GroupVersionPriority("", "v1", 18000, 1),
    GroupVersionPriority("apiregistration.k8s.io", "v1", 17900),
    GroupVersionPriority("apps", "v1", 17800),
    GroupVersionPriority("events.k8s.io", "v1", 17750),
    GroupVersionPriority("authentication.k8s.io", "v1", 17700),
    GroupVersionPriority("authorization.k8s.io", "v1", 17600),
    GroupVersionPriority("autoscaling", "v2", 17500, 30),
    GroupVersionPriority("autoscaling", "v1", 17500),
    GroupVersionPriority("batch", "v1", 17400),
    GroupVersionPriority("certificates.k8s.io", "v1", 17300),
    GroupVersionPriority("networking.k8s.io", "v1", 17200),
    GroupVersionPriority("policy", "v1", 17100),
    GroupVersionPriority("rbac.authorization.k8s.io", "v1", 17000),
    GroupVersionPriority("storage.k8s.io", "v1", 16800),
    GroupVersionPriority("admissionregistration.k8s.io", "v1", 16700),
    GroupVersionPriority("apiextensions.k8s.io", "v1", 16700),
    GroupVersionPriority("scheduling.k8s.io", "v1", 16600),
    GroupVersionPriority("coordination.k8s.io", "v1", 16500),
    GroupVersionPriority("node.k8s.io", "v1", 16300),
    GroupVersionPriority("discovery.k8s.io", "v1", 16200),
    GroupVersionPriority("resource.k8s.io", "v1", 16200, 21),
    GroupVersionPriority("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
)
