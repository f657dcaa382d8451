"""Validation of policies and their expressions (`pkg/apis/admissionregistration/validation`).

Importing this module is slow, as is compiling expressions: see `policy_inquiry`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from steersman.admission_rules.environments import environment
from steersman.admission_rules.expressions import BOOLEAN, compile_admission
from steersman.admission_rules.match_conditions import match_condition_errors
from steersman.admission_rules.mutating import APPLY, JSON_PATCHES
from steersman.admission_rules.validating import TEXT, TEXT_OR_NULL
from steersman.admission_rules.variables import Variables
from steersman.api.admissionregistration.v1 import (
    AuditAnnotation,
    MutatingAdmissionPolicy,
    Mutation,
    ParamKind,
    ValidatingAdmissionPolicy,
    Validation,
    Variable,
)
from steersman.cel.environment import Environment
from steersman.cel.names import RESERVED
from steersman.cel.types import Type
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.go.strings import to_lower, trim_space
from steersman.machinery.validation.formats import (
    byte_length,
    is_dns1035_label,
    is_dns1123_subdomain,
    is_qualified_name,
)
from steersman.machinery.validation.leaves import validate_choice, validate_unique, validate_with
from steersman.registry.admissionregistration.match_validation import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    validate_match_resources,
    validate_mutated_operations,
)
from steersman.work.patterns import late_pattern
from steersman.work.threads import give_way

_SPEC: Final = Path("spec")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
_MOST_ANNOTATIONS: Final = 20
_LONGEST_ANNOTATION: Final = 5 << 10
"""Bytes of the expression of an audit annotation."""
_IDENTIFIER: Final = late_pattern("[_a-zA-Z][_a-zA-Z0-9]*")
_LINE_BREAK: Final = late_pattern("[\n\r]")

Policy = ValidatingAdmissionPolicy | MutatingAdmissionPolicy


def _validate_common(policy: Policy, old: Policy | None) -> Iterator[FieldError]:
    """Validate the fields that both kinds of policies have before their variables."""
    spec = policy.spec
    if spec.failure_policy is None:
        yield required(_SPEC / "failurePolicy")
    elif spec.failure_policy not in FAILURE_POLICIES:
        yield not_supported(_SPEC / "failurePolicy", spec.failure_policy, FAILURE_POLICIES)
    if spec.param_kind is not None:
        yield from _validate_param_kind(spec.param_kind, _SPEC / "paramKind")
    match = _SPEC / "matchConstraints"
    if spec.match_constraints is None:
        yield required(match)
    else:
        yield from validate_match_resources(spec.match_constraints, match)
        if not spec.match_constraints.resource_rules:
            yield required(match / "resourceRules")
        if isinstance(policy, MutatingAdmissionPolicy):
            yield from validate_mutated_operations(spec.match_constraints, match)
    if old is None or (spec.param_kind, spec.match_conditions) != (old.spec.param_kind, old.spec.match_conditions):
        has_params = spec.param_kind is not None
        yield from match_condition_errors(spec.match_conditions, _SPEC / "matchConditions", has_params=has_params)


def _validate_param_kind(kind: ParamKind, path: Path) -> Iterator[FieldError]:
    at = path / "apiVersion"
    group, _, version = kind.api_version.rpartition("/")
    if not kind.api_version:
        yield required(at)
    elif "/" in group:
        yield invalid(at, kind.api_version, f"unexpected GroupVersion string: {kind.api_version}")
    else:
        if group and (wrong := is_dns1123_subdomain(group)):
            yield invalid(at, group, ",".join(wrong))
        if not version:
            yield invalid(at, kind.api_version, "version must be specified")
        elif wrong := is_dns1035_label(version):
            yield invalid(at, version, ",".join(wrong))
    if not kind.kind:
        yield required(path / "kind")
    elif wrong := is_dns1035_label(to_lower(kind.kind)):
        detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        yield invalid(path / "kind", kind.kind, detail)


def _validate_variable(variables: Variables, variable: Variable, path: Path) -> Iterator[FieldError]:
    give_way()
    if not trim_space(variable.name):
        yield required(path / "name", "name is not specified")
    elif _IDENTIFIER.fullmatch(variable.name) is None or variable.name in RESERVED:
        yield invalid(path / "name", variable.name, "must be a valid CEL identifier")
    if not trim_space(variable.expression):
        yield required(path / "expression", "expression is not specified")
    elif error := variables.add(variable.name, variable.expression).field_error(path / "expression"):
        yield error


def _validate_expression(text: str, names: Environment, results: tuple[Type, ...], path: Path) -> Iterator[FieldError]:
    give_way()
    error = compile_admission(text, names, results).field_error(path)
    if error is not None:
        yield error


def validate_validating(
    policy: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy | None
) -> Iterator[FieldError]:
    """Validate a ValidatingAdmissionPolicy that replaces `old` (None on create)."""
    yield from _validate_common(policy, old)
    spec = policy.spec
    variables = Variables(params=spec.param_kind is not None)
    for index, variable in enumerate(spec.variables):
        yield from _validate_variable(variables, variable, (_SPEC / "variables")[index])
    if not spec.validations and not spec.audit_annotations:
        detail = "validations or auditAnnotations must contain at least one item"
        yield required(_SPEC / "validations", detail)
        yield required(_SPEC / "auditAnnotations", detail)
        return
    # Without variables, the name `variables` is undefined, too.
    names_for = variables.environment if spec.variables else partial(environment, params=spec.param_kind is not None)
    names, without_authorizer = names_for(authorizer=True), names_for(authorizer=False)
    for index, validation in enumerate(spec.validations):
        yield from _validate_validation(validation, names, without_authorizer, (_SPEC / "validations")[index])
    path = _SPEC / "auditAnnotations"
    if len(spec.audit_annotations) > _MOST_ANNOTATIONS:
        detail = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield invalid(path, [_message_form(each) for each in spec.audit_annotations], detail)
    keys: set[str] = set()
    for index, annotation in enumerate(spec.audit_annotations):
        yield from _validate_annotation(policy.metadata.name, annotation, names, path[index])
        yield from validate_unique(annotation.key, keys, path[index] / "key")


def _message_form(annotation: AuditAnnotation) -> dict[str, Any]:
    """Return an annotation in the form in which upstream's internal type is printed."""
    return {"Key": annotation.key, "ValueExpression": annotation.value_expression}


def _validate_validation(
    validation: Validation, names: Environment, without_authorizer: Environment, path: Path
) -> Iterator[FieldError]:
    if not trim_space(validation.expression):
        yield required(path / "expression", "expression is not specified")
    else:
        yield from _validate_expression(validation.expression, names, BOOLEAN, path / "expression")
    made = validation.message_expression
    if made and not trim_space(made):
        yield invalid(path / "messageExpression", made, "must be non-empty if specified")
    elif made:
        yield from _validate_expression(made, without_authorizer, TEXT, path / "messageExpression")
    message = trim_space(validation.message)
    if validation.message and not message:
        yield invalid(path / "message", validation.message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message):
        yield invalid(path / "message", validation.message, "must not contain line breaks")
    if validation.reason is not None and validation.reason not in _REASONS:
        yield not_supported(path / "reason", validation.reason, _REASONS)


def _validate_annotation(
    policy: str, annotation: AuditAnnotation, names: Environment, path: Path
) -> Iterator[FieldError]:
    key = f"{policy}/{annotation.key}"
    yield from validate_with(is_qualified_name, key, path / "key")
    at = path / "valueExpression"
    text = trim_space(annotation.value_expression)
    if not text:
        yield required(at, "valueExpression is not specified")
    elif byte_length(text) > _LONGEST_ANNOTATION:
        yield required(at, f"must not exceed {_LONGEST_ANNOTATION} bytes in length")
    else:
        compiled = compile_admission(text, names, TEXT_OR_NULL)
        error = compiled.field_error(at)
        if error is not None:
            yield error if compiled.is_internal else invalid(at, annotation.value_expression, compiled.error)


def validate_mutating(policy: MutatingAdmissionPolicy, old: MutatingAdmissionPolicy | None) -> Iterator[FieldError]:
    """Validate a MutatingAdmissionPolicy that replaces `old` (None on create)."""
    yield from _validate_common(policy, old)
    spec = policy.spec
    variables = Variables(params=spec.param_kind is not None)
    for index, variable in enumerate(spec.variables):
        yield from _validate_variable(variables, variable, (_SPEC / "variables")[index])
    if not spec.mutations:
        yield required(_SPEC / "mutations", "mutations must contain at least one item")
    names = variables.environment(patches=True)
    for index, mutation in enumerate(spec.mutations):
        yield from _validate_mutation(mutation, names, (_SPEC / "mutations")[index])
    at = _SPEC / "reinvocationPolicy"
    yield from validate_choice(spec.reinvocation_policy, REINVOCATION_POLICIES, at)


def _validate_mutation(mutation: Mutation, names: Environment, path: Path) -> Iterator[FieldError]:
    kind = mutation.patch_type
    patch, apply = mutation.json_patch, mutation.apply_configuration
    if not kind:
        yield required(path / "patchType")
    elif kind == "JSONPatch":
        if patch is None:
            yield required(path / "jsonPatch", "must be specified when patchType is JSONPatch")
        else:
            yield from _validate_patch(patch.expression, names, JSON_PATCHES, path / "jsonPatch")
        if apply is not None:
            detail = "must not be specified when patchType is JSONPatch"
            yield invalid(path / "applyConfiguration", "{applyConfiguration}", detail)
    elif kind == "ApplyConfiguration":
        if apply is None:
            yield required(path / "applyConfiguration", "must be specified when patchType is ApplyConfiguration")
        else:
            yield from _validate_patch(apply.expression, names, APPLY, path / "applyConfiguration")
        if patch is not None:
            detail = "must not be specified when patchType is ApplyConfiguration"
            yield invalid(path / "jsonPatch", "{jsonPatch}", detail)
    else:
        yield not_supported(path / "patchType", kind, _PATCH_TYPES)


def _validate_patch(expression: str, names: Environment, results: tuple[Type, ...], path: Path) -> Iterator[FieldError]:
    text = trim_space(expression)
    if not text:
        yield required(path / "expression")
    else:
        yield from _validate_expression(text, names, results, path / "expression")
