"""apiextensions.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.apiextensions.customresourcedefinitions import CUSTOM_RESOURCE_DEFINITIONS

API_EXTENSIONS: Final = APIGroup(
    name="apiextensions.k8s.io",
    priority=16700,
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
    resources=(CUSTOM_RESOURCE_DEFINITIONS,),
)
