"""MutatingAdmissionPolicyBindings: the scope and the parameters of a MutatingAdmissionPolicy."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import MutatingAdmissionPolicyBinding
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.columns import PARAM_REF, POLICY_NAME
from steersman.registry.admissionregistration.defaults import set_binding_defaults
from steersman.registry.admissionregistration.policy_inquiry import InquiryStrategy, mutating_bindings
from steersman.rest.resource import AGE, Resource

MUTATING_ADMISSION_POLICY_BINDINGS = Resource(
    kind=built_in(MutatingAdmissionPolicyBinding, default=set_binding_defaults),
    plural="mutatingadmissionpolicybindings",
    stored_as="admissionregistration.k8s.io/v1beta1",
    namespaced=False,
    categories=("api-extensions",),
    strategy=InquiryStrategy[MutatingAdmissionPolicyBinding](),
    inquiry=mutating_bindings,
    name_validator=name_is_dns_subdomain,
    columns=(POLICY_NAME, PARAM_REF, AGE),
    storage_version_hash="90V5FRZZ3Zg=",
)
