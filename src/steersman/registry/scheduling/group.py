"""scheduling.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.scheduling.priorityclasses import PRIORITY_CLASSES

SCHEDULING: Final = APIGroup(
    name="scheduling.k8s.io",
    priority=16600,
    versions=(Version("v1"),),
    empty_versions=("v1alpha2", "v1beta1"),
    resources=(PRIORITY_CLASSES,),
)
