"""MutatingAdmissionPolicies: expressions that change objects before they are stored."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import MutatingAdmissionPolicy
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.columns import PARAM_KIND
from steersman.registry.admissionregistration.defaults import set_policy_defaults
from steersman.registry.admissionregistration.policy_inquiry import InquiryStrategy, mutating_policies
from steersman.rest.resource import AGE, Column, Resource

MUTATING_ADMISSION_POLICIES = Resource(
    kind=built_in(MutatingAdmissionPolicy, default=set_policy_defaults),
    plural="mutatingadmissionpolicies",
    stored_as="admissionregistration.k8s.io/v1beta1",
    namespaced=False,
    categories=("api-extensions",),
    strategy=InquiryStrategy[MutatingAdmissionPolicy](),
    inquiry=mutating_policies,
    name_validator=name_is_dns_subdomain,
    columns=(
        Column(
            "Mutations",
            lambda p: len(p.spec.mutations),
            type="integer",
            description="Mutation indicates the number of mutations rules defined in this configuration",
        ),
        PARAM_KIND,
        AGE,
    ),
    storage_version_hash="LYmCf+UMVdg=",
)
