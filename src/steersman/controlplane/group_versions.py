"""The built-in group versions in order of priority, as their APIServices have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GroupVersionPriority:
    """A group version; higher priorities come first, versions of one group by `version_priority`."""

    group: str
    version: str
    group_priority: int
    version_priority: int = 15

    @property
    def name(self) -> str:
        """As apiVersion has it."""
        return f"{self.group}/{self.version}" if self.group else self.version


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
    GroupVersionPriority("networking.k8s.io", "v1beta1", 17200, 9),
    GroupVersionPriority("policy", "v1", 17100),
    GroupVersionPriority("rbac.authorization.k8s.io", "v1", 17000),
    GroupVersionPriority("storage.k8s.io", "v1", 16800),
    GroupVersionPriority("storage.k8s.io", "v1beta1", 16800, 9),
    GroupVersionPriority("admissionregistration.k8s.io", "v1", 16700),
    GroupVersionPriority("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    GroupVersionPriority("admissionregistration.k8s.io", "v1alpha1", 16700, 9),
    GroupVersionPriority("apiextensions.k8s.io", "v1", 16700),
    GroupVersionPriority("scheduling.k8s.io", "v1", 16600),
    GroupVersionPriority("coordination.k8s.io", "v1", 16500),
    GroupVersionPriority("coordination.k8s.io", "v1beta1", 16500, 13),
    GroupVersionPriority("coordination.k8s.io", "v1alpha2", 16500, 12),
    GroupVersionPriority("node.k8s.io", "v1", 16300),
    GroupVersionPriority("discovery.k8s.io", "v1", 16200),
    GroupVersionPriority("resource.k8s.io", "v1", 16200, 21),
    GroupVersionPriority("resource.k8s.io", "v1beta2", 16200),
    GroupVersionPriority("resource.k8s.io", "v1beta1", 16200, 9),
    GroupVersionPriority("resource.k8s.io", "v1alpha3", 16200, 1),
    GroupVersionPriority("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    GroupVersionPriority("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
)
"""All that can be served; alpha and beta ones are off by default."""

WITHOUT_RESOURCES: Final = frozenset({
    "admission.k8s.io/v1", "admission.k8s.io/v1beta1", "apiextensions.k8s.io/v1beta1", "apiregistration.k8s.io/v1beta1",
    "apps/v1beta1", "apps/v1beta2", "authentication.k8s.io/v1alpha1", "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1beta1", "batch/v1beta1", "certificates.k8s.io/v1alpha1", "certificates.k8s.io/v1beta1",
    "discovery.k8s.io/v1beta1", "events.k8s.io/v1beta1", "extensions/v1beta1", "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2", "flowcontrol.apiserver.k8s.io/v1beta3", "imagepolicy.k8s.io/v1alpha1",
    "node.k8s.io/v1alpha1", "node.k8s.io/v1beta1", "policy/v1beta1", "rbac.authorization.k8s.io/v1alpha1",
    "rbac.authorization.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1",
    "storage.k8s.io/v1alpha1", "storagemigration.k8s.io/v1beta1",
})  # fmt: skip
"""Versions that upstream knows, and serves nothing in with the default feature gates."""
