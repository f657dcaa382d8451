"""ValidatingAdmissionPolicies: expressions that judge objects before they are stored."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.columns import PARAM_KIND
from steersman.registry.admissionregistration.defaults import set_match_defaults
from steersman.registry.status_metadata import reset_metadata_for_status
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(policy: ValidatingAdmissionPolicy) -> None:
    """A policy that fails refuses the request."""
    if policy.spec.failure_policy is None:
        policy.spec.failure_policy = "Fail"
    set_match_defaults(policy.spec.match_constraints)


class ValidatingAdmissionPolicyStrategy(Strategy[ValidatingAdmissionPolicy]):
    allow_unconditional_update = False

    def prepare_for_create(self, ctx: Context, policy: ValidatingAdmissionPolicy) -> None:
        policy.status = ValidatingAdmissionPolicyStatus()
        policy.metadata.generation = 1

    def prepare_for_update(self, ctx: Context, new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy) -> None:
        new.status = old.status
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


class ValidatingAdmissionPolicyStatusStrategy(StatusStrategy[ValidatingAdmissionPolicy]):
    allow_unconditional_update = False

    def prepare_for_update(self, ctx: Context, new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy) -> None:
        new.spec = old.spec
        reset_metadata_for_status(new.metadata, old.metadata)


VALIDATING_ADMISSION_POLICIES = Resource(
    kind=built_in(ValidatingAdmissionPolicy, default=set_defaults),
    plural="validatingadmissionpolicies",
    namespaced=False,
    categories=("api-extensions",),
    strategy=ValidatingAdmissionPolicyStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column(
            "Validations",
            lambda p: len(p.spec.validations),
            type="integer",
            description="Validations indicates the number of validation rules defined in this configuration",
        ),
        PARAM_KIND,
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=ValidatingAdmissionPolicyStatusStrategy()),),
    storage_version_hash="6OxvlMmQ6is=",
    not_yet="admission policies are not evaluated yet: nothing would enforce this one",
)
