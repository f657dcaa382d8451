"""The built-in group versions with the priorities of their APIServices."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.controlplane.resources import GROUPS


class GroupVersionPriority(Struct, frozen=True):
    """A group version; higher priorities come first, versions of one group by `version_priority`."""

    group: str
    version: str
    group_priority: int
    version_priority: int

    @property
    def name(self) -> str:
        """The group version as in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


GROUP_VERSIONS: Final = tuple(
    GroupVersionPriority(group.name, version.name, group.priority, version.priority)
    for group in GROUPS
    for version in group.versions
)
"""All group versions that can be served; alpha and beta ones are off by default."""

WITHOUT_RESOURCES: Final = frozenset(
    {
        "admission.k8s.io/v1",
        "admission.k8s.io/v1beta1",
        "extensions/v1beta1",
        "imagepolicy.k8s.io/v1alpha1",
        "storagemigration.k8s.io/v1beta1",
        *(f"{group.name}/{version}" for group in GROUPS for version in group.empty_versions),
    }
)
"""Versions that upstream knows, but which have no resources with the default feature gates."""
