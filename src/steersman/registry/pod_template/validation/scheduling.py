"""Validation of scheduling fields: affinity, tolerations, topology spread, scheduling gates and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.errors.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_qualified_name, is_valid_label_value
from steersman.machinery.validation.leaves import validate_qualified_name, validate_unique
from steersman.machinery.validation.object_meta import name_is_dns_subdomain, validate_namespace_name
from steersman.machinery.validation.selectors import (
    STRICT,
    LabelSelectorOptions,
    validate_label_name,
    validate_label_selector,
)
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.work.threads import paced

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SCHEDULE_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
INCLUSION_POLICIES: Final = ("Honor", "Ignore")

_USUAL_TAINTS: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))
"""Keys of the tolerations that admission gives to nearly all pods."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_RANGE: Final = "must be in the range 1-100"
_NOT_POSITIVE: Final = "must be greater than zero"
_LENIENT: Final = LabelSelectorOptions(allow_invalid_label_value=True)
_NOT_AN_OPERATOR: Final = "not a valid selector operator"


def validate_affinity(
    affinity: core.Affinity | None, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate node affinity, pod affinity and pod anti-affinity."""
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        yield from _validate_node_affinity(affinity.node_affinity, path / "nodeAffinity", options)
    for terms, name in ((affinity.pod_affinity, "podAffinity"), (affinity.pod_anti_affinity, "podAntiAffinity")):
        if terms is not None:
            yield from _validate_pod_affinity(terms, path / name, options)


def _validate_node_affinity(
    affinity: core.NodeAffinity, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    needed = affinity.required_during_scheduling_ignored_during_execution
    if needed is not None:
        yield from validate_node_selector(
            needed, path / _REQUIRED, check_values=not options.allow_invalid_node_affinity_values
        )
    for index, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        here = (path / _PREFERRED)[index]
        if not 0 < term.weight <= 100:
            yield invalid(here / "weight", term.weight, _WEIGHT_RANGE)
        yield from validate_node_selector_term(term.preference, here / "preference", check_values=False)


def validate_node_selector(
    selector: core.NodeSelector, path: Path, *, check_values: bool = True
) -> Iterator[FieldError]:
    """Validate a node selector: at least one term, of which a node must match one."""
    here = path / "nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(here, "must have at least one node selector term")
        return
    for index, term in enumerate(selector.node_selector_terms):
        yield from validate_node_selector_term(term, here[index], check_values=check_values)


def validate_node_selector_term(
    term: core.NodeSelectorTerm, path: Path, *, check_values: bool = True
) -> Iterator[FieldError]:
    """Validate the requirements of a term on a node's labels and name."""
    for index, requirement in enumerate(term.match_expressions):
        here = (path / "matchExpressions")[index]
        yield from _validate_node_expression(requirement, here, check_values=check_values)
    for index, requirement in enumerate(term.match_fields):
        yield from _validate_node_field(requirement, (path / "matchFields")[index])


def _validate_node_expression(
    requirement: core.NodeSelectorRequirement, path: Path, *, check_values: bool
) -> Iterator[FieldError]:
    values = path / "values"
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required(values, "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                yield required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield invalid(path / "operator", requirement.operator, _NOT_AN_OPERATOR)
    yield from validate_label_name(requirement.key, path / "key")
    if check_values:
        for index, value in enumerate(requirement.values):
            for message in is_valid_label_value(value):
                yield invalid(values[index], value, message)


def _validate_node_field(requirement: core.NodeSelectorRequirement, path: Path) -> Iterator[FieldError]:
    if requirement.operator not in ("In", "NotIn"):
        yield invalid(path / "operator", requirement.operator, _NOT_AN_OPERATOR)
    elif len(requirement.values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(path / "values", text)
    if requirement.key != "metadata.name":
        yield invalid(path / "key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        for message in name_is_dns_subdomain(value, False):
            yield invalid((path / "values")[index], value, message)


def _validate_pod_affinity(
    affinity: core.PodAffinity | core.PodAntiAffinity, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _validate_pod_affinity_term(term, (path / _REQUIRED)[index], options)
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        here = (path / _PREFERRED)[index]
        if not 0 < weighted.weight <= 100:
            yield invalid(here / "weight", weighted.weight, _WEIGHT_RANGE)
        yield from _validate_pod_affinity_term(weighted.pod_affinity_term, here / "podAffinityTerm", options)


def _validate_pod_affinity_term(
    term: core.PodAffinityTerm, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    lenient = _LENIENT if options.allow_invalid_selector_values else STRICT
    if term.label_selector is not None:
        yield from validate_label_selector(term.label_selector, path / "labelSelector", lenient)
    if term.namespace_selector is not None:
        yield from validate_label_selector(term.namespace_selector, path / "namespaceSelector", lenient)
    for name in term.namespaces:
        for message in validate_namespace_name(name, False):
            yield invalid(path / "namespace", name, message)
    if term.match_label_keys or term.mismatch_label_keys:
        yield from validate_label_keys(term.match_label_keys, term.mismatch_label_keys, term.label_selector, path)
    if not term.topology_key:
        yield required(path / "topologyKey", "can not be empty")
    for message in is_qualified_name(term.topology_key):
        yield invalid(path / "topologyKey", term.topology_key, message)


def validate_label_keys(
    match: list[str], mismatch: list[str], selector: LabelSelector | None, path: Path
) -> Iterator[FieldError]:
    """Validate `matchLabelKeys` and `mismatchLabelKeys`, which strategies merge into the selector on create."""
    for keys, name in ((match, "matchLabelKeys"), (mismatch, "mismatchLabelKeys")):
        if keys and selector is None:
            yield forbidden(path / name, "must not be specified when labelSelector is not set")
        else:
            for index, key in enumerate(keys):
                yield from validate_label_name(key, (path / name)[index])
    if selector is not None and match:
        where = {key: index for index, key in enumerate(match)}
        seen = set(selector.match_labels)
        for expression in selector.match_expressions:
            # The strategy has merged each key in once, so a second occurrence comes from the user.
            if expression.key in where and expression.key in seen:
                text = "exists in both matchLabelKeys and labelSelector"
                yield invalid(path[where[expression.key]], expression.key, text)
            seen.add(expression.key)
    unlike = set(mismatch)
    for index, key in enumerate(match):
        if key in unlike:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid((path / "matchLabelKeys")[index], key, text)


def _validate_unmerged_label_keys(keys: list[str], selector: LabelSelector | None, path: Path) -> Iterator[FieldError]:
    """Validate `matchLabelKeys` of old spread constraints, from before these keys were merged into the selector."""
    if not keys:
        return
    if selector is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
        selected: set[str] = set()
    else:
        selected = {*selector.match_labels, *(expression.key for expression in selector.match_expressions)}
    for index, key in enumerate(keys):
        yield from validate_label_name(key, path[index])
        if key in selected:
            yield invalid(path[index], key, "exists in both matchLabelKeys and labelSelector")


def validate_topology_spread_constraints(
    constraints: list[core.TopologySpreadConstraint], path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate the constraints on how evenly pods spread over zones, nodes..."""
    last = {(each.topology_key, each.when_unsatisfiable): index for index, each in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        here = path[index]
        if constraint.max_skew <= 0:
            yield invalid(here / "maxSkew", constraint.max_skew, _NOT_POSITIVE)
        if not constraint.topology_key:
            yield required(here / "topologyKey", "can not be empty")
        if constraint.when_unsatisfiable not in SCHEDULE_ACTIONS:
            yield not_supported(here / "whenUnsatisfiable", constraint.when_unsatisfiable, SCHEDULE_ACTIONS)
        if last[constraint.topology_key, constraint.when_unsatisfiable] > index:
            kind = f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}"
            yield duplicate(here / "{topologyKey, whenUnsatisfiable}", kind)
        yield from _validate_spread_policies(constraint, here)
        if options.allow_legacy_spread_label_keys:
            yield from _validate_unmerged_label_keys(
                constraint.match_label_keys, constraint.label_selector, here / "matchLabelKeys"
            )
        elif constraint.match_label_keys:
            yield from validate_label_keys(constraint.match_label_keys, [], constraint.label_selector, here)
        if constraint.label_selector is not None and not options.allow_invalid_spread_selectors:
            yield from validate_label_selector(constraint.label_selector, here / "labelSelector")


def _validate_spread_policies(constraint: core.TopologySpreadConstraint, path: Path) -> Iterator[FieldError]:
    domains = constraint.min_domains
    if domains is not None:
        if domains <= 0:
            yield invalid(path / "minDomains", domains, _NOT_POSITIVE)
        if constraint.when_unsatisfiable != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {constraint.when_unsatisfiable}"
            yield invalid(path / "minDomains", domains, text)
    for policy, name in (
        (constraint.node_affinity_policy, "nodeAffinityPolicy"),
        (constraint.node_taints_policy, "nodeTaintsPolicy"),
    ):
        if policy is not None and policy not in INCLUSION_POLICIES:
            yield not_supported(path / name, policy, INCLUSION_POLICIES)


def validate_tolerations(
    tolerations: list[core.Toleration], path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate tolerations of node taints."""
    for index, toleration in enumerate(paced(tolerations)):
        if not toleration.key:
            if toleration.operator != "Exists":
                text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
                yield invalid(path[index] / "operator", toleration.operator, text)
        elif toleration.key not in _USUAL_TAINTS:
            for message in is_qualified_name(toleration.key):
                yield invalid(path[index] / "key", toleration.key, message)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(path[index] / "effect", toleration.effect, text)
        if toleration.operator != "Exists" or toleration.value:
            yield from _validate_toleration_operator(toleration, path[index], options)
        if toleration.effect and toleration.effect not in TAINT_EFFECTS:
            yield not_supported(path[index] / "effect", toleration.effect, TAINT_EFFECTS)


def _validate_toleration_operator(
    toleration: core.Toleration, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    operator = toleration.operator
    here = path / "operator"
    if operator in ("", "Equal"):
        if messages := is_valid_label_value(toleration.value):
            yield invalid(here, toleration.value, ";".join(messages))
    elif operator == "Exists":
        if toleration.value:
            yield invalid(here, toleration.value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        if not options.allow_toleration_comparisons:
            yield not_supported(here, operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield not_supported(here, operator, ("Equal", "Exists"))


def validate_scheduling_gates(gates: list[core.PodSchedulingGate], path: Path) -> Iterator[FieldError]:
    """Validate the gates that must be removed before the pod is scheduled."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        yield from validate_qualified_name(gate.name, path[index])
        yield from validate_unique(gate.name, seen, path[index])


def validate_scheduling_group(group: core.PodSchedulingGroup | None, path: Path) -> Iterator[FieldError]:
    """Validate the reference to the pod group with which a pod is scheduled."""
    if group is None:
        return
    here = path / "podGroupName"
    if group.pod_group_name is None:
        yield invalid(here, None, "must specify one of: `podGroupName`")
        return
    for message in name_is_dns_subdomain(group.pod_group_name, False):
        yield invalid(here, group.pod_group_name, message)
