"""discovery.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.discovery.endpointslices import ENDPOINT_SLICES

DISCOVERY: Final = APIGroup(
    name="discovery.k8s.io",
    priority=16200,
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
    resources=(ENDPOINT_SLICES,),
)
