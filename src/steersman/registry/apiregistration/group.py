"""apiregistration.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.apiregistration.apiservices import API_SERVICES

API_REGISTRATION: Final = APIGroup(
    name="apiregistration.k8s.io",
    priority=20001,  # above the maximum of other groups
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
    resources=(API_SERVICES,),
)
