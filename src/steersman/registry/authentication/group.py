"""authentication.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.authentication.selfsubjectreviews import SELF_SUBJECT_REVIEWS
from steersman.registry.authentication.tokenreviews import TOKEN_REVIEWS

AUTHENTICATION: Final = APIGroup(
    name="authentication.k8s.io",
    priority=17700,
    versions=(Version("v1"),),
    empty_versions=("v1alpha1", "v1beta1"),
    resources=(
        SELF_SUBJECT_REVIEWS,
        TOKEN_REVIEWS,
    ),
)
