"""Cells that the Tables of admission policies share."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from steersman.api.meta.v1 import LabelSelector
from steersman.rest.resource import Column


def _param_kind(policy: MutatingAdmissionPolicy | ValidatingAdmissionPolicy) -> str:
    kind = policy.spec.param_kind
    return "<unset>" if kind is None else f"{kind.api_version}/{kind.kind}"


def _param_ref(binding: MutatingAdmissionPolicyBinding | ValidatingAdmissionPolicyBinding) -> str:
    reference = binding.spec.param_ref
    if reference is None:
        return "<unset>"
    if reference.name:
        return f"{reference.namespace or '*'}/{reference.name}"
    return "<unset>" if reference.selector is None else _printed(reference.selector)


def _printed(selector: LabelSelector) -> str:
    """Return a selector in the form in which Go prints its protobuf message."""
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values)}],}},"
        for each in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


PARAM_KIND = Column(
    "ParamKind",
    _param_kind,
    description="ParamKind specifies the kind of resources used to parameterize this policy",
)
POLICY_NAME = Column(
    "PolicyName",
    lambda binding: binding.spec.policy_name,
    description="PolicyName indicates the policy definition which the policy binding binded to",
)
PARAM_REF = Column(
    "ParamRef", _param_ref, description="ParamRef indicates the param resource which sets the configuration param"
)
