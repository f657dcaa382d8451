"""autoscaling: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.autoscaling.horizontalpodautoscalers import HORIZONTAL_POD_AUTOSCALERS

AUTOSCALING: Final = APIGroup(
    name="autoscaling",
    priority=17500,
    versions=(Version("v2", 30), Version("v1")),
    resources=(HORIZONTAL_POD_AUTOSCALERS,),
)
