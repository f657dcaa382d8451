"""Bringing stored roles and bindings up to what the server ships, without taking away what people added.

Follows k8s.io/component-helpers `auth/rbac/reconciliation` as kube-apiserver uses it at start: what is missing is
added, nothing is removed, an object annotated with autoupdate=false is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.api.rbac.v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    Subject,
)
from steersman.authorization.rbac_rules import uncovered

AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"

AnyRole = TypeVar("AnyRole", Role, ClusterRole)
AnyBinding = TypeVar("AnyBinding", RoleBinding, ClusterRoleBinding)
T = TypeVar("T")


class Operation(Enum):
    """What is to be done with a stored object."""

    NONE = "none"
    CREATE = "create"
    UPDATE = "update"
    RECREATE = "recreate"
    """Delete the stored object (with its uid as precondition) and create the new one: a roleRef cannot change."""


class Reconciled(Struct, Generic[T], frozen=True):
    """What is to be done, and the object to write. `protected` tells that it was wanted and is not allowed."""

    operation: Operation
    object: T
    protected: bool = False


def reconcile_role(existing: AnyRole | None, expected: AnyRole) -> Reconciled[AnyRole]:
    """What a stored Role or ClusterRole lacks of the expected one; arguments are left as they are."""
    if existing is None:
        return Reconciled(Operation.CREATE, expected)
    metadata = _with_missing(existing.metadata, expected.metadata)
    result: AnyRole = replace(existing, metadata=metadata)
    changed = metadata != existing.metadata
    rules: list[PolicyRule] = existing.rules or []
    missing: list[PolicyRule] = [] if rules == expected.rules else uncovered(rules, expected.rules or ())
    if missing:
        result.rules = [*rules, *missing]
        changed = True
    if isinstance(result, ClusterRole) and isinstance(expected, ClusterRole):
        aggregation = _aggregation(result.aggregation_rule, expected.aggregation_rule)
        if aggregation != result.aggregation_rule:
            result.aggregation_rule = aggregation
            changed = True
    return _outcome(existing, result, existing.metadata, changed=changed)


def reconcile_binding(existing: AnyBinding | None, expected: AnyBinding) -> Reconciled[AnyBinding]:
    """What a stored RoleBinding or ClusterRoleBinding lacks of the expected one; arguments are left as they are."""
    if existing is None:
        return Reconciled(Operation.CREATE, expected)
    if existing.role_ref != expected.role_ref:
        if _is_protected(existing.metadata):
            return Reconciled(Operation.NONE, existing, protected=True)
        return Reconciled(Operation.RECREATE, expected)
    metadata = _with_missing(existing.metadata, expected.metadata)
    result: AnyBinding = replace(existing, metadata=metadata)
    changed = metadata != existing.metadata
    subjects: list[Subject] = existing.subjects
    missing: list[Subject] = _missing_subjects(subjects, expected.subjects)
    if missing:
        result.subjects = [*subjects, *missing]
        changed = True
    return _outcome(existing, result, existing.metadata, changed=changed)


def _outcome(existing: T, result: T, metadata: ObjectMeta, *, changed: bool) -> Reconciled[T]:
    if not changed:
        return Reconciled(Operation.NONE, existing)
    if _is_protected(metadata):
        return Reconciled(Operation.NONE, existing, protected=True)
    return Reconciled(Operation.UPDATE, result)


def _is_protected(metadata: ObjectMeta) -> bool:
    return metadata.annotations.get(AUTOUPDATE) == "false"


def _with_missing(existing: ObjectMeta, expected: ObjectMeta) -> ObjectMeta:
    return replace(
        existing,
        labels=_merged(expected.labels, existing.labels),
        annotations=_merged(expected.annotations, existing.annotations),
    )


def _merged(expected: Mapping[str, str], existing: Mapping[str, str]) -> dict[str, str]:
    return {**expected, **existing}


def _aggregation(existing: AggregationRule | None, expected: AggregationRule | None) -> AggregationRule | None:
    """The stored aggregation with the selectors it lacks; none if none is expected."""
    if expected is None or existing is None:
        return expected
    held: list[LabelSelector] = existing.cluster_role_selectors
    missing = [each for each in expected.cluster_role_selectors if each not in held]
    return AggregationRule(cluster_role_selectors=[*held, *missing]) if missing else existing


def _missing_subjects(existing: Iterable[Subject], expected: Iterable[Subject]) -> list[Subject]:
    held = list(existing)
    missing: list[Subject] = []
    for subject in expected:
        if subject not in held and subject not in missing:
            missing.append(subject)
    return missing
