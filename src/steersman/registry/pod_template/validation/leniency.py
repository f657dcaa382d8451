"""Options for updates: invalid values of an old pod or template that its update may keep."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import all_containers, is_huge_page_multiple, is_sidecar
from steersman.machinery.errors.field import Path
from steersman.machinery.validation.formats import is_valid_label_value
from steersman.machinery.validation.resource_names import is_huge_page_resource
from steersman.machinery.validation.selectors import validate_label_selector
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.paths import validate_local_path
from steersman.registry.pod_template.validation.scheduling import validate_label_keys
from steersman.registry.pod_template.validation.security import host_sysctl_error
from steersman.work.patterns import late_pattern

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_DELETION_COST: Final = late_pattern(r"-?[0-9]{1,10}")
_NOWHERE: Final = Path()
_OF_NUMBERS: Final = frozenset(("Lt", "Gt"))
_USUAL_RESOURCES: Final = frozenset(("cpu", "memory"))
_operator: Final = attrgetter("operator")


@lru_cache(maxsize=4)
def _for_new(is_pod: bool, allow_privileged: bool) -> PodValidationOptions:
    return PodValidationOptions(is_pod=is_pod, allow_privileged=allow_privileged)


def pod_template_options(old: core.PodTemplateSpec | None, *, allow_privileged: bool = True) -> PodValidationOptions:
    """Return the options for a template that replaces `old` (None on create)."""
    if old is None:
        return _for_new(False, allow_privileged)
    return pod_options(old.spec, old.metadata.annotations, is_pod=False, allow_privileged=allow_privileged)


def pod_options(
    old: core.PodSpec | None,
    old_annotations: dict[str, str] | None = None,
    *,
    is_pod: bool,
    allow_privileged: bool = True,
) -> PodValidationOptions:
    """Return the options for a spec that replaces `old`, with its annotations (None on create)."""
    strict = _for_new(is_pod, allow_privileged)
    if old is None:
        return strict
    has: dict[str, bool] = {}
    if old_annotations:
        has["allow_invalid_deletion_cost"] = not is_deletion_cost(old_annotations)
    if old.affinity is not None:
        has["allow_invalid_selector_values"] = _has_invalid_affinity_selector(old.affinity)
        has["allow_invalid_node_affinity_values"] = _has_invalid_node_affinity_value(old.affinity)
    if old.topology_spread_constraints:
        has["allow_invalid_spread_selectors"] = _has_invalid_spread_selector(old)
        has["allow_legacy_spread_label_keys"] = _has_invalid_spread_label_keys(old)
    if _has_indivisible_huge_pages(old):
        has["allow_indivisible_huge_pages"] = True
    if (context := old.security_context) is not None:
        if context.sysctls:
            has["allow_host_sysctls"] = any(host_sysctl_error(sysctl.name, old) for sysctl in context.sysctls)
        has["allow_any_selinux_change_policy"] = context.se_linux_change_policy is not None
    if old.volumes:
        has["allow_non_local_token_path"] = _has_non_local_token_path(old)
    if old.tolerations:
        has["allow_toleration_comparisons"] = not _OF_NUMBERS.isdisjoint(map(_operator, old.tolerations))
    if old.host_users is False:
        has["allow_host_network_user_namespaces"] = old.host_network
        has["allow_user_namespaces_with_devices"] = any(c.volume_devices for c in all_containers(old))
    if old.init_containers:
        has["allow_restart_resize_of_init_containers"] = _has_restarts_of_init_containers(old)
    return replace(strict, **has) if any(has.values()) else strict


def is_deletion_cost(annotations: Mapping[str, str]) -> bool:
    """Return True if the pod-deletion-cost annotation is absent, or a 32-bit number without plus sign or leading zeros."""
    cost = annotations.get(DELETION_COST)
    if cost is None:
        return True
    if (cost.startswith("0") and cost != "0") or not _DELETION_COST.fullmatch(cost):
        return False
    return -(2**31) <= int(cost) < 2**31


def _has_invalid_affinity_selector(affinity: core.Affinity) -> bool:
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if terms is None:
            continue
        weighted = [t.pod_affinity_term for t in terms.preferred_during_scheduling_ignored_during_execution]
        for term in (*terms.required_during_scheduling_ignored_during_execution, *weighted):
            for selector in (term.label_selector, term.namespace_selector):
                if any(True for _ in validate_label_selector(selector, _NOWHERE)):
                    return True
    return False


def _has_invalid_node_affinity_value(affinity: core.Affinity) -> bool:
    if (node := affinity.node_affinity) is None:
        return False
    if (required := node.required_during_scheduling_ignored_during_execution) is None:
        return False
    return any(
        is_valid_label_value(value)
        for term in required.node_selector_terms or ()
        for requirement in term.match_expressions
        for value in requirement.values
    )


def _has_invalid_spread_selector(spec: core.PodSpec) -> bool:
    return any(
        True
        for constraint in spec.topology_spread_constraints
        for _ in validate_label_selector(constraint.label_selector, _NOWHERE)
    )


def _has_invalid_spread_label_keys(spec: core.PodSpec) -> bool:
    return any(
        True
        for constraint in spec.topology_spread_constraints
        for _ in validate_label_keys(constraint.match_label_keys, [], constraint.label_selector, _NOWHERE)
    )


def _has_indivisible_huge_pages(spec: core.PodSpec) -> bool:
    lists = [spec.overhead or {}]
    for container in all_containers(spec):
        resources = container.resources
        if resources.limits or resources.requests:
            lists += [resources.limits, resources.requests]
    for amounts in lists:
        if not _USUAL_RESOURCES.issuperset(amounts) and any(
            is_huge_page_resource(name) and not is_huge_page_multiple(name, quantity)
            for name, quantity in amounts.items()
        ):
            return True
    return False


def _has_non_local_token_path(spec: core.PodSpec) -> bool:
    return any(
        True
        for volume in spec.volumes
        if volume.projected is not None
        for source in volume.projected.sources or ()
        if source.service_account_token is not None
        for _ in validate_local_path(source.service_account_token.path, _NOWHERE)
    )


def _has_restarts_of_init_containers(spec: core.PodSpec) -> bool:
    return any(
        policy.restart_policy == "RestartContainer"
        for container in spec.init_containers
        if not is_sidecar(container)
        for policy in container.resize_policy
    )
