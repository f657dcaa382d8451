"""The condition that says whether a kind in a group of the Kubernetes community is approved.

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


def judge_approval(definition: Declared) -> None:
    """Puts the condition into the status of a definition in such a group."""
    if is_protected(definition.spec.group):
        state, message = approval(definition.metadata.annotations)
        set_condition(definition, CONFORMANT, *_REASONS[state], message)
