"""authorization.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.authorization.localsubjectaccessreviews import LOCAL_SUBJECT_ACCESS_REVIEWS
from steersman.registry.authorization.selfsubjectaccessreviews import SELF_SUBJECT_ACCESS_REVIEWS
from steersman.registry.authorization.selfsubjectrulesreviews import SELF_SUBJECT_RULES_REVIEWS
from steersman.registry.authorization.subjectaccessreviews import SUBJECT_ACCESS_REVIEWS

AUTHORIZATION: Final = APIGroup(
    name="authorization.k8s.io",
    priority=17600,
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
    resources=(
        LOCAL_SUBJECT_ACCESS_REVIEWS,
        SELF_SUBJECT_ACCESS_REVIEWS,
        SELF_SUBJECT_RULES_REVIEWS,
        SUBJECT_ACCESS_REVIEWS,
    ),
)
