"""ValidatingAdmissionPolicyBindings: the scope and the parameters of a ValidatingAdmissionPolicy."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import ValidatingAdmissionPolicyBinding
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.columns import PARAM_REF, POLICY_NAME
from steersman.registry.admissionregistration.defaults import set_binding_defaults
from steersman.registry.admissionregistration.policy_inquiry import InquiryStrategy, validating_bindings
from steersman.rest.resource import AGE, Resource

VALIDATING_ADMISSION_POLICY_BINDINGS = Resource(
    kind=built_in(ValidatingAdmissionPolicyBinding, default=set_binding_defaults),
    plural="validatingadmissionpolicybindings",
    namespaced=False,
    categories=("api-extensions",),
    strategy=InquiryStrategy[ValidatingAdmissionPolicyBinding](),
    inquiry=validating_bindings,
    name_validator=name_is_dns_subdomain,
    columns=(POLICY_NAME, PARAM_REF, AGE),
    storage_version_hash="v9715VZqakg=",
)
