"""Validation of a job's podFailurePolicy and successPolicy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from steersman.api.batch.v1 import (
    JobSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from steersman.machinery.errors.field import (
    OMITTED,
    FieldError,
    Path,
    invalid,
    not_supported,
    quote,
    required,
    too_long,
    too_many,
)
from steersman.machinery.validation.formats import is_qualified_name
from steersman.machinery.validation.leaves import validate_nonnegative, validate_unique, validate_with
from steersman.registry.batch.indexes import IndexesError, count_indexes

MAX_FAILURE_RULES: Final = 20
MAX_EXIT_CODES: Final = 255
MAX_CONDITION_PATTERNS: Final = 20
MAX_SUCCESS_RULES: Final = 20
MAX_SUCCEEDED_INDEXES: Final = 64 * 1024
"""Bytes of text."""

ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")


def _valid_values(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(quote, values))}]"


def validate_pod_failure_policy(spec: JobSpec, policy: PodFailurePolicy, path: Path) -> Iterator[FieldError]:
    """Validate the rules for failed pods."""
    rules, at = policy.rules or [], path / "rules"
    if len(rules) > MAX_FAILURE_RULES:
        yield too_many(at, len(rules), MAX_FAILURE_RULES)
    pod = spec.template.spec
    containers = {container.name for container in (*(pod.containers or ()), *pod.init_containers)}
    for index, rule in enumerate(rules):
        yield from _validate_failure_rule(spec, rule, at[index], containers)


def _validate_failure_rule(
    spec: JobSpec, rule: PodFailurePolicyRule, path: Path, containers: set[str]
) -> Iterator[FieldError]:
    if not rule.action:
        yield required(path / "action", _valid_values(ACTIONS))
    elif rule.action == "FailIndex":
        if spec.backoff_limit_per_index is None:
            yield invalid(path / "action", rule.action, "requires the backoffLimitPerIndex to be set")
    elif rule.action not in ACTIONS:
        yield not_supported(path / "action", rule.action, ACTIONS)
    if rule.on_exit_codes is not None:
        yield from _validate_exit_codes(rule.on_exit_codes, path / "onExitCodes", containers)
    if rule.on_pod_conditions:
        yield from _validate_conditions(rule.on_pod_conditions, path / "onPodConditions")
    if rule.on_exit_codes is not None and rule.on_pod_conditions:
        yield invalid(path, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
    if rule.on_exit_codes is None and not rule.on_pod_conditions:
        yield invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _validate_exit_codes(
    codes: PodFailurePolicyOnExitCodesRequirement, path: Path, containers: set[str]
) -> Iterator[FieldError]:
    if not codes.operator:
        yield required(path / "operator", _valid_values(OPERATORS))
    elif codes.operator not in OPERATORS:
        yield not_supported(path / "operator", codes.operator, OPERATORS)
    if codes.container_name is not None and codes.container_name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(path / "containerName", codes.container_name, detail)
    values, at = codes.values or [], path / "values"
    if not values:
        yield invalid(at, codes.values, "at least one value is required")
    elif len(values) > MAX_EXIT_CODES:
        yield too_many(at, len(values), MAX_EXIT_CODES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if codes.operator == "In" and value == 0:
            yield invalid(at[index], value, "must not be 0 for the In operator")
        yield from validate_unique(value, seen, at[index])
    if any(before > after for before, after in itertools.pairwise(values)):
        yield invalid(at, values, "must be ordered")


def _validate_conditions(patterns: list[PodFailurePolicyOnPodConditionsPattern], path: Path) -> Iterator[FieldError]:
    if len(patterns) > MAX_CONDITION_PATTERNS:
        yield too_many(path, len(patterns), MAX_CONDITION_PATTERNS)
    for index, pattern in enumerate(patterns):
        yield from validate_with(is_qualified_name, pattern.type, path[index] / "type")
        if not pattern.status:
            yield required(path[index] / "status", _valid_values(STATUSES))
        elif pattern.status not in STATUSES:
            yield not_supported(path[index] / "status", pattern.status, STATUSES)


def validate_success_policy(spec: JobSpec, policy: SuccessPolicy, path: Path) -> Iterator[FieldError]:
    """Validate the rules for success of a job that has completions and indexes."""
    rules, at = policy.rules or [], path / "rules"
    if not rules:
        yield required(at, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > MAX_SUCCESS_RULES:
        yield too_many(at, len(rules), MAX_SUCCESS_RULES)
    for index, rule in enumerate(rules):
        yield from _validate_success_rule(rule, spec.completions or 0, at[index])


def _validate_success_rule(rule: SuccessPolicyRule, completions: int, path: Path) -> Iterator[FieldError]:
    indexes, count = rule.succeeded_indexes, rule.succeeded_count
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        at = path / "succeededIndexes"
        if len(indexes.encode()) > MAX_SUCCEEDED_INDEXES:
            yield too_long(at, MAX_SUCCEEDED_INDEXES)
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            yield invalid(at, indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    at = path / "succeededCount"
    yield from validate_nonnegative(count, at)
    if count > completions:
        yield invalid(at, count, f"must be less than or equal to {completions} (the number of specified completions)")
    if indexes is not None and count > total:
        detail = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        yield invalid(at, count, detail)
