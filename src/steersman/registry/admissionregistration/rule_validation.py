"""Validation of the rules of webhooks and policies (pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.admissionregistration.v1 import NamedRuleWithOperations, RuleWithOperations
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.validation.leaves import validate_supported

OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")

_ANY: Final = "*"
_SCOPES: Final = ("*", "Cluster", "Namespaced")


def validate_rule(rule: RuleWithOperations | NamedRuleWithOperations, path: Path) -> Iterator[FieldError]:
    """Validate a rule."""
    given = rule.operations
    if not given:
        yield required(path / "operations")
    yield from _alone(given, path / "operations", "operations")
    for index, operation in enumerate(given):
        yield from validate_supported(operation, OPERATIONS, (path / "operations")[index])
    if not rule.api_groups:
        yield required(path / "apiGroups")
    yield from _alone(rule.api_groups, path / "apiGroups", "API groups")
    if not rule.api_versions:
        yield required(path / "apiVersions")
    yield from _alone(rule.api_versions, path / "apiVersions", "API versions")
    for index, version in enumerate(rule.api_versions):
        if not version:
            yield required((path / "apiVersions")[index])
    yield from _validate_resources(rule.resources, path / "resources")
    if rule.scope is not None and rule.scope not in _SCOPES:
        yield not_supported(path / "scope", rule.scope, _SCOPES)


def _alone(given: Sequence[str], path: Path, what: str) -> Iterator[FieldError]:
    """Forbid other values beside "*", which stands for all of them."""
    if len(given) > 1 and _ANY in given:
        yield invalid(path, list(given), f"if '*' is present, must not specify other {what}")


def _validate_resources(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    all_below: set[str] = set()
    of_all: set[str] = set()
    last_plain_is_named = False
    for index, each in enumerate(resources):
        if not each:
            yield required(path[index])
            continue
        resource, slash, subresource = each.partition("/")
        if not slash:
            last_plain_is_named = each != _ANY  # as upstream, the last one decides
            continue
        if resource in all_below:
            yield invalid(path[index], each, f"if '{resource}/*' is present, must not specify {each}")
        if subresource in of_all:
            yield invalid(path[index], each, f"if '*/{subresource}' is present, must not specify {each}")
        if subresource == _ANY:
            all_below.add(resource)
        if resource == _ANY:
            of_all.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, list(resources), "if '*/*' is present, must not specify other resources")
    if _ANY in resources and last_plain_is_named:
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, list(resources), text)
