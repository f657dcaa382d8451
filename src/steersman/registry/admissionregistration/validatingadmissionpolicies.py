"""ValidatingAdmissionPolicies: expressions that accept or reject objects before they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.go.strings import trim_space
from steersman.machinery.json_path.parser import JSONPathError, parse
from steersman.machinery.validation.conditions import validate_conditions
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.columns import PARAM_KIND
from steersman.registry.admissionregistration.defaults import set_policy_defaults
from steersman.registry.admissionregistration.policy_inquiry import InquiryStrategy, validating_policies
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy


def validate_status(status: ValidatingAdmissionPolicyStatus, path: Path) -> Iterator[FieldError]:
    """Validate the warnings of type checking and the conditions."""
    checked = path.child("typeChecking", "expressionWarnings")
    for index, warning in enumerate(() if status.type_checking is None else status.type_checking.expression_warnings):
        at = checked[index]
        if not warning.warning:
            yield required(at / "warning")
        reference = trim_space(warning.field_ref)
        if not reference:
            yield required(at / "fieldRef")
            continue
        try:
            parse(f"{{{reference}}}")
        except JSONPathError as error:
            yield invalid(at / "fieldRef", reference, f"invalid JSONPath: {error}")
    yield from validate_conditions(status.conditions, path / "conditions")


class ValidatingAdmissionPolicyStrategy(InquiryStrategy[ValidatingAdmissionPolicy]):
    resets = ("status",)


class ValidatingAdmissionPolicyStatusStrategy(StatusStrategy[ValidatingAdmissionPolicy]):
    resets = ("spec", "metadata")

    def validate_update(
        self, ctx: Context, new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy
    ) -> Iterator[FieldError]:
        return validate_status(new.status, Path("status"))


VALIDATING_ADMISSION_POLICIES = Resource(
    kind=built_in(ValidatingAdmissionPolicy, default=set_policy_defaults),
    plural="validatingadmissionpolicies",
    namespaced=False,
    categories=("api-extensions",),
    strategy=ValidatingAdmissionPolicyStrategy(),
    inquiry=validating_policies,
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
)
