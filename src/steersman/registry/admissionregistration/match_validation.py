"""Validation of the match resources of policies and bindings: rules and selectors.

Follows `pkg/apis/admissionregistration/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.admissionregistration.v1 import MatchResources, NamedRuleWithOperations
from steersman.machinery.errors.field import FieldError, Path, not_supported, required
from steersman.machinery.validation.formats import is_path_segment_name
from steersman.machinery.validation.leaves import validate_supported, validate_unique, validate_with
from steersman.machinery.validation.selectors import validate_label_selector
from steersman.registry.admissionregistration.rule_validation import validate_rule
from steersman.work.threads import paced

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")

_MUTATED_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations with an object that is stored afterwards, so that a mutation has an effect."""


def validate_match_resources(match: MatchResources | None, path: Path) -> Iterator[FieldError]:
    """Validate the match resources of a policy or a binding."""
    if match is None:
        return
    if match.match_policy is None:
        yield required(path / "matchPolicy")
    elif match.match_policy not in MATCH_POLICIES:
        yield not_supported(path / "matchPolicy", match.match_policy, MATCH_POLICIES)
    for name, selector in (("namespaceSelector", match.namespace_selector), ("objectSelector", match.object_selector)):
        if selector is None:
            yield required(path / name)
        else:
            yield from validate_label_selector(selector, path / name)
    for name, rules in (
        ("resourceRules", match.resource_rules),
        ("excludeResourceRules", match.exclude_resource_rules),
    ):
        for index, rule in enumerate(rules):
            yield from _validate_named_rule(rule, (path / name)[index])


def _validate_named_rule(rule: NamedRuleWithOperations, path: Path) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, name in enumerate(paced(rule.resource_names)):
        at = (path / "resourceNames")[index]
        yield from validate_with(is_path_segment_name, name, at)
        yield from validate_unique(name, names, at)
    yield from validate_rule(rule, path)


def validate_mutated_operations(match: MatchResources | None, path: Path) -> Iterator[FieldError]:
    """Allow only operations that store an object, for mutating policies; `path` is that of `match`."""
    for rule in () if match is None else match.resource_rules:
        for operation in paced(rule.operations or ()):
            yield from validate_supported(operation, _MUTATED_OPERATIONS, path.child("resourceRules", "operations"))
