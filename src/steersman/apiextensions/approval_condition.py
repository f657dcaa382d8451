"""The condition of definitions in groups of the Kubernetes community that says whether they are approved.

Follows apiextensions-apiserver `pkg/controller/apiapproval`.
"""

from __future__ import annotations

from typing import Final

from steersman.apiextensions.declared import Declared
from steersman.registry.apiextensions.approval import APPROVED, BYPASSED, INVALID, MISSING, approval, is_protected
from steersman.registry.apiextensions.conditions import set_condition

CONFORMANT: Final = "KubernetesAPIApprovalPolicyConformant"

_REASONS: Final = {
    APPROVED: ("True", "ApprovedAnnotation"),
    BYPASSED: ("False", "UnapprovedAnnotation"),
    INVALID: ("False", "InvalidAnnotation"),
    MISSING: ("False", "MissingAnnotation"),
}


def set_approval_condition(definition: Declared) -> None:
    """Set the condition in the status of a definition in a protected group."""
    if is_protected(definition.spec.group):
        state, message = approval(definition.metadata.annotations)
        set_condition(definition, CONFORMANT, *_REASONS[state], message)
