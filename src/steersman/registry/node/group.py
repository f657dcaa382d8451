"""node.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.node.runtimeclasses import RUNTIME_CLASSES

NODE: Final = APIGroup(
    name="node.k8s.io",
    priority=16300,
    versions=(Version("v1"),),
    empty_versions=("v1alpha1", "v1beta1"),
    resources=(RUNTIME_CLASSES,),
)
