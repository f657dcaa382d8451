"""ValidatingAdmissionPolicyBindings: the scope and the parameters of a ValidatingAdmissionPolicy."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import ValidatingAdmissionPolicyBinding
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.columns import PARAM_REF, POLICY_NAME
from steersman.registry.admissionregistration.defaults import set_match_defaults
from steersman.registry.admissionregistration.policy_inquiry import InquiryStrategy, validating_bindings
from steersman.rest.resource import AGE, Resource


def set_defaults(binding: ValidatingAdmissionPolicyBinding) -> None:
    """Set the defaults of the binding's match resources."""
    set_match_defaults(binding.spec.match_resources)


class ValidatingAdmissionPolicyBindingStrategy(InquiryStrategy[ValidatingAdmissionPolicyBinding]):
    bumps_generation_on = ("spec",)


VALIDATING_ADMISSION_POLICY_BINDINGS = Resource(
    kind=built_in(ValidatingAdmissionPolicyBinding, default=set_defaults),
    plural="validatingadmissionpolicybindings",
    namespaced=False,
    categories=("api-extensions",),
    strategy=ValidatingAdmissionPolicyBindingStrategy(),
    inquiry=validating_bindings,
    name_validator=name_is_dns_subdomain,
    columns=(POLICY_NAME, PARAM_REF, AGE),
    storage_version_hash="v9715VZqakg=",
)
