"""admissionregistration.k8s.io/v1beta1 and v1alpha1, off by default: mutating admission policies."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.admissionregistration import v1, v1alpha1, v1beta1
from steersman.registry.admissionregistration.defaults import set_binding_defaults, set_policy_defaults
from steersman.registry.older_version import deprecated, older_version


def set_v1alpha1_binding_defaults(binding: Any) -> None:
    """Set the defaults of v1, and of v1alpha1: a request is denied if its parameters are not found."""
    set_binding_defaults(binding)
    params = binding.spec.param_ref
    if params is not None and params.parameter_not_found_action is None:
        params.parameter_not_found_action = "Deny"


OLDER_VERSIONS: Final = {
    "mutatingadmissionpolicies": (
        older_version(
            v1.MutatingAdmissionPolicy,
            v1beta1.MutatingAdmissionPolicy,
            default=set_policy_defaults,
        ),
        older_version(
            v1.MutatingAdmissionPolicy,
            v1alpha1.MutatingAdmissionPolicy,
            deprecated(v1alpha1.MutatingAdmissionPolicy, "1.35", "1.38"),
            default=set_policy_defaults,
        ),
    ),
    "mutatingadmissionpolicybindings": (
        older_version(
            v1.MutatingAdmissionPolicyBinding,
            v1beta1.MutatingAdmissionPolicyBinding,
            default=set_binding_defaults,
        ),
        older_version(
            v1.MutatingAdmissionPolicyBinding,
            v1alpha1.MutatingAdmissionPolicyBinding,
            deprecated(v1alpha1.MutatingAdmissionPolicyBinding, "1.35", "1.38"),
            default=set_v1alpha1_binding_defaults,
        ),
    ),
}
"""The older versions by resource."""
