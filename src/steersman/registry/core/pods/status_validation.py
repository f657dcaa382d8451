"""Validation of updates of a pod's status.

Terminated containers stay terminated unless they restart, and addresses must be valid.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
)
from steersman.machinery.validation.formats import is_valid_group_id, is_valid_user_id
from steersman.machinery.validation.ip import is_valid_ip_for_legacy_field, parse_ip_sloppy
from steersman.machinery.validation.leaves import (
    validate_dns1123_label,
    validate_name,
    validate_qualified_name,
    validate_required_name,
    validate_supported,
    validate_unique,
    validate_with,
)
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import is_native_resource
from steersman.machinery.values.quantity import parse
from steersman.registry.core.pods.update_validation import validate_annotation_update
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.printing.internal_form import internal_text

_STATUS: Final = Path("status")
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_HEALTH_MESSAGE: Final = 1024
_NOT_NEGATIVE: Final = "must be a non-negative integer"


def validate_pod_status_update(new: core.Pod, old: core.Pod, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate an update through `/status`. The store validates the metadata."""
    yield from validate_annotation_update(new, old, options)
    status, before, spec = new.status, old.status, old.spec
    yield from _validate_conditions(status.conditions)
    yield from _validate_nominated_node(new, old)
    if status.observed_generation < 0:
        yield invalid(_STATUS / "observedGeneration", status.observed_generation, _NOT_NEGATIVE)
    if status.qos_class != before.qos_class:
        yield invalid(_STATUS / "qosClass", status.qos_class, "field is immutable")
    restartable = _all_can_restart(spec)
    for now, then, containers, name in (
        (status.container_statuses, before.container_statuses, spec.containers or [], "containerStatuses"),
        (status.init_container_statuses, before.init_container_statuses, spec.init_containers, "initContainerStatuses"),
    ):
        if not restartable:
            yield from _validate_transitions(now, then, containers, spec.restart_policy, _STATUS / name)
    yield from _validate_transitions(
        status.ephemeral_container_statuses,
        before.ephemeral_container_statuses,
        None,
        "",
        _STATUS / "ephemeralContainerStatuses",
    )
    yield from _validate_claims(status, new.spec)
    yield from _validate_addresses(status, before)
    yield from _validate_containers(status, new.spec)


def _validate_conditions(conditions: list[core.PodCondition]) -> Iterator[FieldError]:
    for index, condition in enumerate(conditions):
        here = (_STATUS / "conditions")[index]
        if condition.observed_generation < 0:
            yield invalid(here / "observedGeneration", condition.observed_generation, _NOT_NEGATIVE)
        if condition.type not in _SYSTEM_CONDITIONS:
            yield from validate_qualified_name(condition.type, here / "Type")


def _validate_nominated_node(new: core.Pod, old: core.Pod) -> Iterator[FieldError]:
    name, path = new.status.nominated_node_name, _STATUS / "nominatedNodeName"
    if not name or name == old.status.nominated_node_name:
        return
    yield from validate_name(name_is_dns_subdomain, name, path)
    if old.spec.node_name:
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _all_can_restart(spec: core.PodSpec) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.init_containers, *(spec.containers or ()))
        for rule in container.restart_policy_rules
    )


def _validate_transitions(
    new: list[core.ContainerStatus],
    old: list[core.ContainerStatus],
    containers: list[core.Container] | None,
    pod_policy: str,
    path: Path,
) -> Iterator[FieldError]:
    """Forbid a terminated container to run again unless its policy restarts it.

    `containers` is None for ephemeral containers, which never restart.
    """
    going_on = {status.name for status in new if status.state.terminated is None}
    by_name: dict[str, core.Container] = {}
    for each in containers or ():
        by_name.setdefault(each.name, each)
    for index, before in enumerate(old):
        if (ended := before.state.terminated) is None or before.name not in going_on:
            continue
        container = by_name.get(before.name)
        if container is None or not _should_restart(container, pod_policy, ended.exit_code):
            yield forbidden(path[index] / "state", "may not be transitioned to non-terminated state")


def _should_restart(container: core.Container, pod_policy: str, exit_code: int) -> bool:
    policy = container.restart_policy
    if policy is not None:
        for rule in container.restart_policy_rules:
            if (codes := rule.exit_codes) is not None and (exit_code in codes.values) == (codes.operator == "In"):
                if codes.operator in ("In", "NotIn") and rule.action in ("Restart", "RestartAllContainers"):
                    return True
                break
    if policy not in ("Always", "OnFailure", "Never"):
        policy = pod_policy
    if policy == "OnFailure":
        return exit_code != 0
    return policy != "Never"


def _validate_claims(status: core.PodStatus, spec: core.PodSpec) -> Iterator[FieldError]:
    claims = {claim.name for claim in spec.resource_claims}
    seen: set[str] = set()
    for index, claim in enumerate(status.resource_claim_statuses):
        here = (_STATUS / "resourceClaimStatuses")[index]
        if claim.name not in claims:
            text = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(here / "name", claim.name, text)
        yield from validate_unique(claim.name, seen, here / "name")
        if claim.resource_claim_name is not None:
            yield from validate_name(name_is_dns_subdomain, claim.resource_claim_name, here / "resourceClaimName")
    if status.extended_resource_claim_status is not None:
        yield from _validate_extended_claim(status.extended_resource_claim_status, spec)
    if status.node_allocatable_resource_claim_statuses:
        names = {claim.resource_claim_name for claim in spec.resource_claims}
        names |= {claim.resource_claim_name for claim in status.resource_claim_statuses}
        for index, allocated in enumerate(status.node_allocatable_resource_claim_statuses):
            here = (_STATUS / "nodeAllocatableResourceClaimStatuses")[index]
            yield from _validate_allocatable_claim(allocated, names, here)


def _validate_extended_claim(status: core.PodExtendedResourceClaimStatus, spec: core.PodSpec) -> Iterator[FieldError]:
    path = _STATUS / "extendedResourceClaimStatus"
    containers = {container.name: container for container in (*spec.init_containers, *(spec.containers or ()))}
    if not status.request_mappings:
        yield required(path / "requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(status.request_mappings or ()):
        here = (path / "requestMappings")[index]
        container = containers.get(mapping.container_name)
        entry = "spec.initContainers.{0} or spec.containers.{0}"
        if container is None:
            text = f"must match the name of an entry in {entry.format('name')}"
            yield invalid(here / "containerName", mapping.container_name, text)
        elif mapping.resource_name not in container.resources.requests:
            text = f"must match the extended resource name of an entry in {entry.format('resources.requests')}"
            yield invalid(here / "resourceName", mapping.resource_name, text)
        yield from validate_dns1123_label(mapping.request_name, path / "requestName")
        key = (mapping.container_name, mapping.resource_name, mapping.request_name)
        if key in seen:
            for name, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                yield duplicate(here / name, value)
        seen.add(key)
    yield from validate_required_name(name_is_dns_subdomain, status.resource_claim_name, path / "resourceClaimName")


def _validate_allocatable_claim(
    allocated: core.NodeAllocatableResourceClaimStatus, names: Container[str | None], path: Path
) -> Iterator[FieldError]:
    """Validate a claim status; `names` has the names of all claims of the pod."""
    name = allocated.resource_claim_name
    if not name:
        yield required(path / "resourceClaimName", "must not be empty")
    if name not in names:
        yield invalid(path / "resourceClaimName", name, "no mapping found in pod reference")
    if not allocated.containers:
        yield required(path / "containers", "must not be empty")
    if not allocated.resources:
        yield required(path / "resources", "must not be empty")
    for resource, quantity in (allocated.resources or {}).items():
        here = (path / "resources")[resource]
        if not is_native_resource(resource):
            yield invalid(here, resource, "must be a node allocatable resource name")
        if parse(quantity).sign < 0:
            yield invalid(here, quantity, "must be non-negative")


def _validate_addresses(status: core.PodStatus, before: core.PodStatus) -> Iterator[FieldError]:
    path = _STATUS / "podIPs"
    known = {each.ip for each in before.pod_ips}
    for index, pod_ip in enumerate(status.pod_ips):
        yield from is_valid_ip_for_legacy_field(pod_ip.ip, path[index], valid_old=known)
    yield from _validate_pair([each.ip for each in status.pod_ips], status.pod_ips, path)
    if not status.host_ips:
        return
    path = _STATUS / "hostIPs"
    if status.host_ip != status.host_ips[0].ip:
        yield invalid(path[0] / "ip", status.host_ips[0].ip, "must be equal to `hostIP`")
    known = {each.ip for each in before.host_ips}
    for index, host_ip in enumerate(status.host_ips):
        yield from is_valid_ip_for_legacy_field(host_ip.ip, path[index], valid_old=known)
    yield from _validate_pair([each.ip for each in status.host_ips], status.host_ips, path)


def _validate_pair(
    addresses: list[str], shown: list[core.PodIP] | list[core.HostIP], path: Path
) -> Iterator[FieldError]:
    """Allow at most one address of each family."""
    if len(addresses) < 2:
        return
    versions = set()
    for address in addresses:
        parsed = parse_ip_sloppy(address)
        if parsed is None:
            # Upstream reports that the check failed, and goes on.
            text = f"failed to check for dual stack with error:invalid IP[{addresses.index(address)}]: {address}"
            yield FieldError("InternalError", str(path), detail=text)
            break
        versions.add(parsed.version)
    if versions != {4, 6} or len(addresses) > 2:
        yield invalid(path, internal_text(shown), "may specify no more than one IP for each IP family")


def _validate_containers(status: core.PodStatus, spec: core.PodSpec) -> Iterator[FieldError]:
    os = spec.os.name if spec.os is not None else "linux"
    lists = (
        (status.container_statuses, spec.containers or [], "containerStatuses"),
        (status.init_container_statuses, spec.init_containers, "initContainerStatuses"),
        (status.ephemeral_container_statuses, None, "ephemeralContainerStatuses"),
    )
    for statuses, _, name in lists:
        for index, container_status in enumerate(statuses):
            if container_status.user is not None:
                yield from _validate_user(container_status.user, os, (_STATUS / name)[index].child("user", "linux"))
    for statuses, containers, name in lists:
        for index, container_status in enumerate(statuses):
            if container_status.allocated_resources_status:
                here = (_STATUS / name)[index] / "allocatedResourcesStatus"
                yield from _validate_allocated(container_status, containers, here)


def _validate_user(user: core.ContainerUser, os: str, path: Path) -> Iterator[FieldError]:
    linux = user.linux
    if linux is None:
        return
    if os == "windows":
        yield forbidden(path, "cannot be set for a windows pod")
    if os != "linux":
        return
    yield from validate_with(is_valid_user_id, linux.uid, path / "uid")
    yield from validate_with(is_valid_group_id, linux.gid, path / "gid")
    for index, group in enumerate(linux.supplemental_groups):
        yield from validate_with(is_valid_group_id, group, (path / "supplementalGroups")[index])


def _validate_allocated(
    status: core.ContainerStatus, containers: Iterable[core.Container] | None, path: Path
) -> Iterator[FieldError]:
    if containers is None:
        yield forbidden(path, "must not be specified in container status")
        return
    container = next((each for each in containers if each.name == status.name), None)
    for index, resource in enumerate(status.allocated_resources_status):
        here = path[index]
        if container is not None and (fault := _not_requested(resource.name, container)):
            yield invalid(here / "name", resource.name, fault)
        seen: set[str] = set()
        for number, health in enumerate(resource.resources):
            where = (here / "resources")[number]
            yield from validate_supported(health.health, _HEALTH, where / "health")
            if health.message is not None:
                if not health.message:
                    yield required(where / "message", "must be non-empty if specified")
                elif len(health.message.encode()) > _LONGEST_HEALTH_MESSAGE:
                    yield too_long(where / "message", _LONGEST_HEALTH_MESSAGE)
            yield from validate_unique(health.resource_id, seen, where / "resourceID")


def _not_requested(name: str, container: core.Container) -> str:
    """Return an error text if the container does not request the resource, "" if it does."""
    if not name.startswith("claim:"):
        asked = name in container.resources.requests
        return "" if asked else "must match one of the container's resource requests"
    for claim in container.resources.claims:
        if name == f"claim:{claim.name}" + (f"/{claim.request}" if claim.request else ""):
            return ""
    return (
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' "
        "or 'claim:<claimName>' if request is empty"
    )
