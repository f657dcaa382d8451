"""What would have no effect yet is refused, and is still shown as it should be."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.registry.admissionregistration.mutatingadmissionpolicies import MUTATING_ADMISSION_POLICIES
from steersman.registry.admissionregistration.mutatingadmissionpolicybindings import MUTATING_ADMISSION_POLICY_BINDINGS
from steersman.registry.admissionregistration.mutatingwebhookconfigurations import MUTATING_WEBHOOK_CONFIGURATIONS
from steersman.registry.admissionregistration.validatingadmissionpolicies import VALIDATING_ADMISSION_POLICIES
from steersman.registry.admissionregistration.validatingadmissionpolicybindings import (
    VALIDATING_ADMISSION_POLICY_BINDINGS,
)
from steersman.registry.admissionregistration.validatingwebhookconfigurations import VALIDATING_WEBHOOK_CONFIGURATIONS
from steersman.rest.resource import Resource


@pytest.mark.parametrize(
    "resource",
    [
        MUTATING_ADMISSION_POLICIES,
        MUTATING_ADMISSION_POLICY_BINDINGS,
        MUTATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING_ADMISSION_POLICIES,
        VALIDATING_ADMISSION_POLICY_BINDINGS,
        VALIDATING_WEBHOOK_CONFIGURATIONS,
    ],
    ids=lambda resource: resource.plural,
)
def test_it_is_refused_and_an_empty_one_has_every_cell(resource: Resource[Any]) -> None:
    assert resource.not_yet
    assert not resource.namespaced
    empty = resource.kind.new()
    resource.kind.default(empty)
    for column in resource.columns:
        if column.cell is not None:
            column.cell(empty)
