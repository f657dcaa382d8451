"""What an update of a pod or template may keep: whatever the object already had that is refused today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
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

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_DELETION_COST: Final = re.compile(r"-?[0-9]{1,10}")
_NOWHERE: Final = Path()


@lru_cache(maxsize=4)
def _for_new(is_pod: bool, allow_privileged: bool) -> PodValidationOptions:
    return PodValidationOptions(is_pod=is_pod, allow_privileged=allow_privileged)


def pod_template_options(old: core.PodTemplateSpec | None, *, allow_privileged: bool = True) -> PodValidationOptions:
    """For a template; `old` is the one it replaces, None on create."""
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
    """For a spec; `old` and `old_annotations` are what it replaces, None on create."""
    strict = _for_new(is_pod, allow_privileged)
    if old is None:
        return strict
    user_namespaces = old.host_users is False
    context = old.security_context
    has = {
        "allow_invalid_deletion_cost": bool(old_annotations) and not is_deletion_cost(old_annotations or {}),
        "allow_invalid_selector_values": _has_invalid_affinity_selector(old),
        "allow_invalid_node_affinity_values": _has_invalid_node_affinity_value(old),
        "allow_invalid_spread_selectors": _has_invalid_spread_selector(old),
        "allow_legacy_spread_label_keys": _has_invalid_spread_label_keys(old),
        "allow_indivisible_huge_pages": _has_indivisible_huge_pages(old),
        "allow_host_sysctls": _has_host_sysctls(old),
        "allow_non_local_token_path": _has_non_local_token_path(old),
        "allow_any_selinux_change_policy": context is not None and context.se_linux_change_policy is not None,
        "allow_toleration_comparisons": any(t.operator in ("Lt", "Gt") for t in old.tolerations),
        "allow_host_network_user_namespaces": user_namespaces and old.host_network,
        "allow_user_namespaces_with_devices": user_namespaces and any(c.volume_devices for c in all_containers(old)),
        "allow_restart_resize_of_init_containers": _has_restarts_of_init_containers(old),
    }
    return replace(strict, **has) if any(has.values()) else strict


def is_deletion_cost(annotations: Mapping[str, str]) -> bool:
    """Whether the pod-deletion-cost annotation is absent, or a 32-bit number without plus sign or leading zeros."""
    cost = annotations.get(DELETION_COST)
    if cost is None:
        return True
    if (cost.startswith("0") and cost != "0") or not _DELETION_COST.fullmatch(cost):
        return False
    return -(2**31) <= int(cost) < 2**31


def _has_invalid_affinity_selector(spec: core.PodSpec) -> bool:
    if spec.affinity is None:
        return False
    for terms in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
        if terms is None:
            continue
        weighted = [t.pod_affinity_term for t in terms.preferred_during_scheduling_ignored_during_execution]
        for term in (*terms.required_during_scheduling_ignored_during_execution, *weighted):
            for selector in (term.label_selector, term.namespace_selector):
                if any(True for _ in validate_label_selector(selector, _NOWHERE)):
                    return True
    return False


def _has_invalid_node_affinity_value(spec: core.PodSpec) -> bool:
    if spec.affinity is None or (node := spec.affinity.node_affinity) is None:
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
    return bool(spec.topology_spread_constraints) and any(
        True
        for constraint in spec.topology_spread_constraints
        for _ in validate_label_selector(constraint.label_selector, _NOWHERE)
    )


def _has_invalid_spread_label_keys(spec: core.PodSpec) -> bool:
    return bool(spec.topology_spread_constraints) and any(
        True
        for constraint in spec.topology_spread_constraints
        for _ in validate_label_keys(constraint.match_label_keys, [], constraint.label_selector, _NOWHERE)
    )


def _has_indivisible_huge_pages(spec: core.PodSpec) -> bool:
    lists = [spec.overhead or {}]
    for container in all_containers(spec):
        lists += [container.resources.limits, container.resources.requests]
    for resources in lists:
        for name, quantity in resources.items():
            if is_huge_page_resource(name) and not is_huge_page_multiple(name, quantity):
                return True
    return False


def _has_host_sysctls(spec: core.PodSpec) -> bool:
    sysctls = spec.security_context.sysctls if spec.security_context is not None else ()
    return bool(sysctls) and any(host_sysctl_error(sysctl.name, spec) for sysctl in sysctls)


def _has_non_local_token_path(spec: core.PodSpec) -> bool:
    return bool(spec.volumes) and any(
        True
        for volume in spec.volumes
        if volume.projected is not None
        for source in volume.projected.sources or ()
        if source.service_account_token is not None
        for _ in validate_local_path(source.service_account_token.path, _NOWHERE)
    )


def _has_restarts_of_init_containers(spec: core.PodSpec) -> bool:
    return bool(spec.init_containers) and any(
        policy.restart_policy == "RestartContainer"
        for container in spec.init_containers
        if not is_sidecar(container)
        for policy in container.resize_policy
    )
