"""Validation of whole pods and pod templates, in upstream's order and wording (core/validation)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Final

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.built_in.pod_resources import all_containers
from steersman.machinery.codec.go_json import internal, unmarshal, with_wire_names
from steersman.machinery.codec.go_types import GoType, struct_of
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, required, too_long
from steersman.machinery.validation.formats import (
    inclusive_range_error,
    is_dns1123_subdomain,
    is_dns1123_subdomain_with_underscore,
)
from steersman.machinery.validation.ip import is_valid_ip_for_legacy_field
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_dns1123_label,
    validate_dns1123_subdomain,
    validate_name,
    validate_qualified_name,
    validate_with,
)
from steersman.machinery.validation.object_meta import (
    name_is_dns_subdomain,
    validate_annotations,
    validate_service_account_name,
)
from steersman.machinery.validation.selectors import validate_labels
from steersman.registry.pod_template.known_specs import unless_passed
from steersman.registry.pod_template.validation.containers import (
    PodScope,
    validate_containers,
    validate_ephemeral_containers,
    validate_images_of_pod,
    validate_init_containers,
)
from steersman.registry.pod_template.validation.env import reads_files, validate_file_key_volumes
from steersman.registry.pod_template.validation.leniency import DELETION_COST, is_deletion_cost, pod_template_options
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.profiles import validate_profile_annotations, validate_profiles_match
from steersman.registry.pod_template.validation.resources import (
    MIRROR_POD,
    validate_overhead,
    validate_pod_resources,
    validate_resource_claims,
)
from steersman.registry.pod_template.validation.scheduling import (
    validate_affinity,
    validate_scheduling_gates,
    validate_scheduling_group,
    validate_tolerations,
    validate_topology_spread_constraints,
)
from steersman.registry.pod_template.validation.security import (
    validate_host_ports,
    validate_host_users,
    validate_pod_security_context,
)
from steersman.registry.pod_template.validation.volumes import Volumes, validate_volumes
from steersman.registry.pod_template.validation.windows import mentions_windows, validate_host_process, validate_os

TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
"""A legacy annotation that is still validated."""
RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")

_NO_CONTEXT: Final = core.PodSecurityContext()
_MAX_NAMESERVERS: Final = 3
_MAX_SEARCH_PATHS: Final = 32
_MAX_SEARCH_LENGTH: Final = 2048
_LONGEST_HOSTNAME: Final = 64
_MAX_INT32: Final = (1 << 31) - 1
_SPEC: Final = Path("spec")
_ANNOTATIONS: Final = Path("metadata", "annotations")


def validate_pod_template_spec(
    template: core.PodTemplateSpec, path: Path, options: PodValidationOptions | None = None
) -> Iterator[FieldError]:
    """Validate a template. `options` come from `leniency.pod_template_options`; the default is for a new template."""
    options = options or pod_template_options(None)
    metadata = template.metadata
    yield from validate_labels(metadata.labels, path / "labels")
    yield from validate_annotations(metadata.annotations, path / "annotations")
    yield from validate_pod_annotations(metadata.annotations, template.spec, path / "annotations", options)
    yield from validate_pod_spec(template.spec, None, path / "spec", options)
    yield from validate_profiles_match(metadata.annotations, template.spec, path / "spec")
    if template.spec.ephemeral_containers:
        text = "ephemeral containers not allowed in pod template"
        yield forbidden(path.child("spec", "ephemeralContainers"), text)


def validate_pod_create(pod: core.Pod, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate a new pod. The store validates the metadata."""
    yield from validate_pod(pod, options)
    if pod.spec.ephemeral_containers:
        yield forbidden(_SPEC / "ephemeralContainers", "cannot be set on create")
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield forbidden(_SPEC / "nodeName", "cannot be set until all schedulingGates have been cleared")
    if pod.metadata.annotations:
        yield from validate_profiles_match(pod.metadata.annotations, pod.spec, _SPEC)


def validate_pod(pod: core.Pod, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate the parts that new and updated pods share."""
    spec = pod.spec
    if pod.metadata.annotations:
        yield from validate_pod_annotations(pod.metadata.annotations, spec, _ANNOTATIONS, options)
    yield from validate_pod_spec(spec, pod.metadata, _SPEC, options)
    if spec.volumes and not spec.service_account_name:
        yield from _validate_no_tokens(spec.volumes)
    yield from validate_images_of_pod(spec.containers or (), _SPEC / "containers")
    if spec.init_containers:
        yield from validate_images_of_pod(spec.init_containers, _SPEC / "initContainers")


def _validate_no_tokens(volumes: list[core.Volume]) -> Iterator[FieldError]:
    for index, volume in enumerate(volumes):
        if volume.projected is None:
            continue
        sources = (_SPEC / "volumes")[index].child("projected", "sources")
        for number, source in enumerate(volume.projected.sources or ()):
            if source.service_account_token is not None:
                text = "must not be specified when serviceAccountName is not set"
                yield forbidden(sources[number] / "serviceAccountToken", text)


@cache
def _tolerations() -> GoType:
    return internal(GoType("list", "[]v1.Toleration", element=struct_of(core.Toleration)), "core")


def validate_pod_annotations(
    annotations: Mapping[str, str], spec: core.PodSpec, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate annotations with a meaning for the API server."""
    if MIRROR_POD in annotations and not spec.node_name:
        text = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(path[MIRROR_POD], annotations[MIRROR_POD], text)
    if annotations.get(TOLERATIONS):
        yield from _validate_annotated_tolerations(annotations[TOLERATIONS], path, options)
    if not options.allow_invalid_deletion_cost and not is_deletion_cost(annotations):
        yield invalid(path[DELETION_COST], annotations[DELETION_COST], "must be a 32bit integer")
    yield from validate_profile_annotations(annotations, spec, path)


def _validate_annotated_tolerations(text: str, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    try:
        plain = with_wire_names(unmarshal(_tolerations(), text.encode()) or [])
    except DecodeError as error:
        yield invalid(path, TOLERATIONS, str(error))
        return
    tolerations = from_plain(list[core.Toleration], plain)
    yield from validate_tolerations(tolerations, path / TOLERATIONS, options)


def validate_pod_spec(
    spec: core.PodSpec, metadata: ObjectMeta | None, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate a pod spec; `metadata` is the pod's, None for a template.

    A spec that was valid before is not validated again, unless its errors depend on the metadata.
    """
    errors = _validate_spec(spec, metadata, path, options)
    if spec.resource_claims or any(volume.ephemeral is not None for volume in spec.volumes):
        return errors
    return unless_passed(spec, options, errors)


def _validate_spec(
    spec: core.PodSpec, metadata: ObjectMeta | None, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if spec.termination_grace_period_seconds is None:
        yield required(path / "terminationGracePeriodSeconds")
    volumes: Volumes = {}
    if spec.volumes:
        volumes, errors = validate_volumes(spec.volumes, metadata, path / "volumes", options)
        yield from errors
    claims: Collection[str] = ()
    if spec.resource_claims:
        claims = {claim.name for claim in spec.resource_claims if claim.name}
        yield from validate_resource_claims(metadata, spec.resource_claims, path / "resourceClaims")
    scope = PodScope(spec, volumes, claims, options)
    yield from validate_containers(scope, path / "containers")
    if spec.init_containers:
        yield from validate_init_containers(scope, path / "initContainers")
    if spec.ephemeral_containers:
        yield from validate_ephemeral_containers(scope, path / "ephemeralContainers")
    if spec.resources is not None:
        yield from validate_pod_resources(spec, claims, path, options)
    if spec.host_network:
        yield from validate_host_ports(spec, path, options)
    if spec.restart_policy not in RESTART_POLICIES:
        yield from validate_choice(spec.restart_policy, RESTART_POLICIES, path / "restartPolicy")
    if spec.dns_policy not in DNS_POLICIES:
        yield from validate_choice(spec.dns_policy, DNS_POLICIES, path / "dnsPolicy")
    if spec.node_selector:
        yield from validate_labels(spec.node_selector, path / "nodeSelector")
    if spec.security_context != _NO_CONTEXT or spec.share_process_namespace:
        yield from validate_pod_security_context(spec, path, options)
    yield from _validate_placement(spec, path, options)
    containers = all_containers(spec)
    if mentions_windows(spec, containers):
        yield from validate_host_process(spec, path, options)
    if spec.host_users is False:
        yield from validate_host_users(spec, path, options)
    if spec.hostname_override is not None:
        yield from _validate_hostname_override(spec, path)
    yield from _validate_names(spec, path)
    yield from _validate_rest(spec, path, options)
    if reads_files(containers):
        yield from validate_file_key_volumes(spec, path)


def _validate_placement(spec: core.PodSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    if spec.affinity is not None:
        yield from validate_affinity(spec.affinity, path / "affinity", options)
    if spec.dns_config is not None or spec.dns_policy == "None":
        yield from _validate_dns_config(spec, path / "dnsConfig")
    for index, readiness_gate in enumerate(spec.readiness_gates):
        here = (path / "readinessGates")[index] / "conditionType"
        yield from validate_qualified_name(readiness_gate.condition_type, here)
    if spec.scheduling_gates:
        yield from validate_scheduling_gates(spec.scheduling_gates, path / "schedulingGates")
    if spec.topology_spread_constraints:
        yield from validate_topology_spread_constraints(
            spec.topology_spread_constraints, path / "topologySpreadConstraints", options
        )


def _validate_names(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    if spec.service_account_name:
        yield from validate_name(validate_service_account_name, spec.service_account_name, path / "serviceAccountName")
    if spec.node_name:
        yield from validate_name(name_is_dns_subdomain, spec.node_name, path / "nodeName")
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        yield invalid(path / "activeDeadlineSeconds", deadline, inclusive_range_error(1, _MAX_INT32))
    if spec.hostname:
        yield from validate_dns1123_label(spec.hostname, path / "hostname")
    if spec.subdomain:
        yield from validate_dns1123_label(spec.subdomain, path / "subdomain")


def _validate_rest(spec: core.PodSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    if spec.tolerations:
        yield from validate_tolerations(spec.tolerations, path / "tolerations", options)
    for index, alias in enumerate(spec.host_aliases):
        here = (path / "hostAliases")[index]
        yield from is_valid_ip_for_legacy_field(alias.ip, here / "ip")
        for number, hostname in enumerate(alias.hostnames):
            yield from validate_dns1123_subdomain(hostname, (here / "hostnames")[number])
    if spec.priority_class_name:
        yield from validate_name(name_is_dns_subdomain, spec.priority_class_name, path / "priorityClassName")
    if spec.runtime_class_name is not None:
        yield from validate_name(name_is_dns_subdomain, spec.runtime_class_name, path / "runtimeClassName")
    if spec.preemption_policy is not None and spec.preemption_policy not in PREEMPTION_POLICIES:
        yield from validate_choice(spec.preemption_policy, PREEMPTION_POLICIES, path / "preemptionPolicy")
    if spec.overhead:
        yield from validate_overhead(spec.overhead, path / "overhead", options)
    if spec.os is not None:
        yield from validate_os(spec, path)
    if spec.scheduling_group is not None:
        yield from validate_scheduling_group(spec.scheduling_group, path / "schedulingGroup")


def _validate_hostname_override(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    name, here = spec.hostname_override, path / "hostnameOverride"
    if name is None:
        return
    if spec.set_hostname_as_fqdn:
        yield forbidden(here, "may not be specified when setHostnameAsFQDN is true")
    if spec.host_network:
        yield forbidden(here, "may not be specified when hostNetwork is true")
    if len(name.encode()) > _LONGEST_HOSTNAME:
        yield too_long(here, _LONGEST_HOSTNAME)
    yield from validate_with(is_dns1123_subdomain, name, here)


def _validate_dns_config(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    config = spec.dns_config
    if config is None:
        if spec.dns_policy == "None":
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    nameservers, searches = config.nameservers, config.searches
    if spec.dns_policy == "None" and not nameservers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(path / "nameservers", text)
        return
    if len(nameservers) > _MAX_NAMESERVERS:
        text = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        yield invalid(path / "nameservers", nameservers, text)
    for index, nameserver in enumerate(nameservers):
        yield from is_valid_ip_for_legacy_field(nameserver, (path / "nameservers")[index])
    if len(searches) > _MAX_SEARCH_PATHS:
        yield invalid(path / "searches", searches, f"must not have more than {_MAX_SEARCH_PATHS} search paths")
    if len(" ".join(searches).encode()) > _MAX_SEARCH_LENGTH:
        text = f"must not have more than {_MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        yield invalid(path / "searches", searches, text)
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from validate_with(is_dns1123_subdomain_with_underscore, name, (path / "searches")[index])
    for index, option in enumerate(config.options):
        if not option.name:
            yield required((path / "options")[index], "must not be empty")
