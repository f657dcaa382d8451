"""flowcontrol.apiserver.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.flowcontrol.flowschemas import FLOW_SCHEMAS
from steersman.registry.flowcontrol.prioritylevelconfigurations import PRIORITY_LEVEL_CONFIGURATIONS

FLOW_CONTROL: Final = APIGroup(
    name="flowcontrol.apiserver.k8s.io",
    priority=16100,
    versions=(Version("v1", 21),),
    empty_versions=("v1beta1", "v1beta2", "v1beta3"),
    resources=(
        FLOW_SCHEMAS,
        PRIORITY_LEVEL_CONFIGURATIONS,
    ),
)
