"""Reconciliation of stored roles and bindings with the server's defaults, without removing additions of users.

Follows k8s.io/component-helpers `auth/rbac/reconciliation` as kube-apiserver uses it at start: missing parts are added,
nothing is removed, and objects with the annotation autoupdate=false are left unchanged.
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
    """Operation to perform on a stored object."""

    NONE = "none"
    CREATE = "create"
    UPDATE = "update"
    RECREATE = "recreate"
    """Delete the stored object (with its uid as precondition) and create the new one, as a roleRef cannot change."""


class Reconciled(Struct, Generic[T], frozen=True):
    """The operation, and the object to write. `protected` is True if the annotation forbids a needed change."""

    operation: Operation
    object: T
    protected: bool = False


def reconcile_role(existing: AnyRole | None, expected: AnyRole) -> Reconciled[AnyRole]:
    """Compare a stored Role or ClusterRole (None if missing) with the default. Does not modify the arguments."""
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
    """Compare a stored RoleBinding or ClusterRoleBinding (None if missing) with the default. Does not modify the
    arguments.
    """
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
    """Return the stored aggregation rule with the missing selectors added; None if the default has none."""
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
