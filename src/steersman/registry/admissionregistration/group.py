"""admissionregistration.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.admissionregistration.mutatingadmissionpolicies import MUTATING_ADMISSION_POLICIES
from steersman.registry.admissionregistration.mutatingadmissionpolicybindings import MUTATING_ADMISSION_POLICY_BINDINGS
from steersman.registry.admissionregistration.mutatingwebhookconfigurations import MUTATING_WEBHOOK_CONFIGURATIONS
from steersman.registry.admissionregistration.validatingadmissionpolicies import VALIDATING_ADMISSION_POLICIES
from steersman.registry.admissionregistration.validatingadmissionpolicybindings import (
    VALIDATING_ADMISSION_POLICY_BINDINGS,
)
from steersman.registry.admissionregistration.validatingwebhookconfigurations import VALIDATING_WEBHOOK_CONFIGURATIONS
from steersman.registry.api_group import APIGroup, OnRequest, Version


def _on_request() -> OnRequest:
    from steersman.registry.admissionregistration.older_versions import OLDER_VERSIONS

    return OnRequest(older_versions=OLDER_VERSIONS)


ADMISSION_REGISTRATION: Final = APIGroup(
    name="admissionregistration.k8s.io",
    priority=16700,
    versions=(Version("v1"), Version("v1beta1", 12), Version("v1alpha1", 9)),
    resources=(
        MUTATING_ADMISSION_POLICIES,
        MUTATING_ADMISSION_POLICY_BINDINGS,
        MUTATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING_ADMISSION_POLICIES,
        VALIDATING_ADMISSION_POLICY_BINDINGS,
        VALIDATING_WEBHOOK_CONFIGURATIONS,
    ),
    on_request=_on_request,
)
