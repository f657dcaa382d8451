"""policy: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS

POLICY: Final = APIGroup(
    name="policy",
    priority=17100,
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
    resources=(POD_DISRUPTION_BUDGETS,),
)
