"""Validation of bindings of admission policies (`pkg/apis/admissionregistration/validation`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.admissionregistration.v1 import (
    MutatingAdmissionPolicyBinding,
    ParamRef,
    ValidatingAdmissionPolicyBinding,
)
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    forbidden,
    invalid,
    required,
)
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_path_segment_name
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_required,
    validate_supported,
    validate_unique,
    validate_with,
)
from steersman.machinery.validation.selectors import validate_label_selector
from steersman.registry.admissionregistration.match_validation import (
    validate_match_resources,
    validate_mutated_operations,
)
from steersman.work.threads import paced

_SPEC: Final = Path("spec")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")


Binding = MutatingAdmissionPolicyBinding | ValidatingAdmissionPolicyBinding


def validate_binding(binding: Binding) -> Iterator[FieldError]:
    """Validate a binding of either kind."""
    spec = binding.spec
    yield from validate_required(is_dns1123_subdomain, spec.policy_name, _SPEC / "policyName")
    if spec.param_ref is not None:
        yield from _validate_param_ref(spec.param_ref, _SPEC / "paramRef")
    yield from validate_match_resources(spec.match_resources, _SPEC / "matchResources")
    if isinstance(binding, ValidatingAdmissionPolicyBinding):
        yield from _validate_actions(binding.spec.validation_actions, _SPEC / "validationActions")
    else:
        yield from validate_mutated_operations(spec.match_resources, _SPEC / "matchResources")


def _validate_param_ref(ref: ParamRef, path: Path) -> Iterator[FieldError]:
    both = "name and selector are mutually exclusive"
    if ref.name:
        yield from validate_with(is_path_segment_name, ref.name, path / "name")
        if ref.selector is not None:
            yield forbidden(path / "name", both)
    if ref.selector is not None:
        yield from validate_label_selector(ref.selector, path / "selector")
        if ref.name:
            yield forbidden(path / "selector", both)
    if not ref.name and ref.selector is None:
        yield required(path, "one of name or selector must be specified")
    action = ref.parameter_not_found_action
    yield from validate_choice(action, _NOT_FOUND_ACTIONS, path / "parameterNotFoundAction")


def _validate_actions(actions: Sequence[str], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, action in enumerate(paced(actions)):
        yield from validate_supported(action, _ACTIONS, path[index])
        yield from validate_unique(action, seen, path[index])
    if "Deny" in seen and "Warn" in seen:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield invalid(path, actions, detail)
    if not seen:
        yield required(path, "at least one validation action is required")
