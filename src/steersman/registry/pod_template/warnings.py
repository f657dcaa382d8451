"""Warnings about pods and templates that are valid but probably not intended (pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import compress
from operator import attrgetter
from typing import Final

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.errors.field import Path, quote
from steersman.machinery.validation.formats import is_valid_label_value
from steersman.machinery.validation.ip import warnings_for_ip
from steersman.machinery.values.quantity import is_whole_in_milli
from steersman.registry.pod_template.apparmor import DEPRECATED, profile_for_annotation
from steersman.registry.pod_template.known_specs import unless_passed
from steersman.registry.pod_template.path_warnings import overlapping_path_warnings
from steersman.registry.pod_template.validation.profiles import (
    APP_ARMOR_CONTAINER,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    has_profiles,
)
from steersman.registry.pod_template.visiting import containers_with_paths
from steersman.registry.validation.deprecated_labels import DEPRECATED as DEPRECATED_NODE_LABELS

_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = (
    ("photon_persistent_disk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("git_repo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scale_io", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("ephemeral", "ephemeral", ""),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
_name: Final = attrgetter("name")
_sources: Final = attrgetter(*(attribute for attribute, _, _ in _VOLUMES))
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"
_BYTES: Final = ("memory", "ephemeral-storage")


def warnings_for_pod(pod: core.Pod) -> Iterator[str]:
    """Yield warnings about a new pod."""
    return _warnings(pod.spec, pod.metadata, Path(), is_template=False)


def warnings_for_pod_template(template: core.PodTemplateSpec, path: Path) -> Iterator[str]:
    """Yield warnings about a template at `path`."""
    return _warnings(template.spec, template.metadata, path, is_template=True)


def _warnings(spec: core.PodSpec, metadata: ObjectMeta, path: Path, *, is_template: bool) -> Iterator[str]:
    """Return the warnings about a spec and its metadata. A spec that caused none before is not examined again."""
    warnings = _found(spec, metadata, path, is_template=is_template)
    annotations = metadata.annotations
    if annotations and (has_profiles(annotations) or not annotations.keys().isdisjoint(_ANNOTATIONS)):
        return warnings
    return unless_passed(spec, _warnings, warnings)


def _found(spec: core.PodSpec, metadata: ObjectMeta, path: Path, *, is_template: bool) -> Iterator[str]:
    here = path / "spec"
    if spec.node_selector or spec.affinity is not None or spec.topology_spread_constraints:
        yield from _node_label_warnings(spec, here)
    if not metadata.annotations.keys().isdisjoint(_ANNOTATIONS):
        annotations = path.child("metadata", "annotations")
        for key, text in _ANNOTATIONS.items():
            if key in metadata.annotations:
                yield f"{annotations[key]}: {text}"
    if spec.volumes:
        yield from _volume_warnings(spec.volumes, here / "volumes")
        yield from overlapping_path_warnings(spec.volumes)
    if spec.host_aliases or spec.image_pull_secrets:
        yield from _duplicate_warnings(spec, here)
    if spec.overhead:
        for name in _BYTES:
            yield from fractional_byte_warnings(spec.overhead, name, here / "overhead")
    containers = all_containers(spec)
    profiled = bool(metadata.annotations) and has_profiles(metadata.annotations)
    if profiled:
        yield from _seccomp_warnings(spec, metadata, path)
    if profiled or not all(map(_is_plain, containers)):
        for container, where in containers_with_paths(spec, here):
            if profiled:
                yield from _profile_warnings(container, spec, metadata, path, is_template=is_template)
            yield from _container_warnings(container, where)
    if not _have_plain_ports(containers):
        yield from _port_warnings(spec, here)
    period = spec.termination_grace_period_seconds
    if period is not None and period < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{here / 'terminationGracePeriodSeconds'}: {text}"
    if spec.affinity is not None:
        yield from _affinity_warnings(spec.affinity, here / "affinity")
    if spec.dns_config is not None:
        for index, nameserver in enumerate(spec.dns_config.nameservers):
            yield from warnings_for_ip(nameserver, here.child("dnsConfig", "nameservers")[index])
    for index, alias in enumerate(spec.host_aliases):
        yield from warnings_for_ip(alias.ip, (here / "hostAliases")[index] / "ip")


def _node_label_warnings(spec: core.PodSpec, path: Path) -> Iterator[str]:
    for key in spec.node_selector:
        if text := DEPRECATED_NODE_LABELS.get(key):
            yield f"{(path / 'nodeSelector')[key]}: {text}"
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    if node is not None:
        here = path.child("affinity", "nodeAffinity")
        if (needed := node.required_during_scheduling_ignored_during_execution) is not None:
            terms = here.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
            for index, term in enumerate(needed.node_selector_terms or ()):
                yield from node_selector_term_warnings(term, terms[index], check_values=False)
        for index, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            term_path = (here / "preferredDuringSchedulingIgnoredDuringExecution")[index] / "preference"
            yield from node_selector_term_warnings(preferred.preference, term_path, check_values=True)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        here = (path / "topologySpreadConstraints")[index]
        if text := DEPRECATED_NODE_LABELS.get(constraint.topology_key):
            yield f"{here / 'topologyKey'}: {constraint.topology_key} is {text}"
        if constraint.label_selector is None:
            yield f"{here / 'labelSelector'}: {_NULL_SELECTOR}"


def node_selector_term_warnings(term: core.NodeSelectorTerm, path: Path, *, check_values: bool) -> Iterator[str]:
    """Yield warnings about deprecated node labels; with `check_values` also about values that no label can have."""
    for index, expression in enumerate(term.match_expressions):
        here = (path / "matchExpressions")[index]
        if text := DEPRECATED_NODE_LABELS.get(expression.key):
            yield f"{here / 'key'}: {expression.key} is {text}"
        if check_values:
            for number, value in enumerate(expression.values):
                for message in is_valid_label_value(value):
                    yield f"{(here / 'values')[number]}: {value} is invalid, {message}"


def _volume_warnings(volumes: list[core.Volume], path: Path) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for _, name, text in compress(_VOLUMES, _sources(volume)):
            if text:
                yield f"{path[index] / name}: {text}"
            elif volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
                here = path[index].child("ephemeral", "volumeClaimTemplate", "spec")
                yield from claim_spec_warnings(volume.ephemeral.volume_claim_template.spec, here)


def claim_spec_warnings(spec: core.PersistentVolumeClaimSpec, path: Path) -> Iterator[str]:
    """Yield warnings about storage in fractions of a byte."""
    resources = path / "resources"
    yield from fractional_byte_warnings(spec.resources.requests, "storage", resources / "requests")
    yield from fractional_byte_warnings(spec.resources.limits, "storage", resources / "limits")


def fractional_byte_warnings(resources: dict[str, str], name: str, path: Path) -> Iterator[str]:
    """Yield a warning if a number of bytes is fractional."""
    quantity = resources.get(name)
    if quantity is not None and not is_whole_in_milli(quantity):
        yield f"{path[name]}: fractional byte value {quote(quantity)} is invalid, must be an integer"


def _duplicate_warnings(spec: core.PodSpec, path: Path) -> Iterator[str]:
    addresses: set[str] = set()
    for index, alias in enumerate(spec.host_aliases):
        if alias.ip in addresses:
            yield f"{(path / 'hostAliases')[index] / 'ip'}: duplicate ip {quote(alias.ip)}"
        addresses.add(alias.ip)
    secrets: set[str] = set()
    for index, secret in enumerate(spec.image_pull_secrets):
        if secret.name in secrets:
            yield f"{(path / 'imagePullSecrets')[index] / 'name'}: duplicate name {quote(secret.name)}"
        secrets.add(secret.name)
    for index, secret in enumerate(spec.image_pull_secrets):
        if not secret.name:
            yield f"{(path / 'imagePullSecrets')[index] / 'name'}: invalid empty name {quote(secret.name)}"


def _seccomp_warnings(spec: core.PodSpec, metadata: ObjectMeta, path: Path) -> Iterator[str]:
    context = spec.security_context
    if SECCOMP_POD in metadata.annotations and (context is None or context.seccomp_profile is None):
        yield f"{path.child('metadata', 'annotations')[SECCOMP_POD]}: {_SECCOMP}"


def _profile_warnings(
    container: AnyContainer, spec: core.PodSpec, metadata: ObjectMeta, path: Path, *, is_template: bool
) -> Iterator[str]:
    context, here = container.security_context, path.child("metadata", "annotations")
    key = SECCOMP_CONTAINER + container.name
    if key in metadata.annotations and (context is None or context.seccomp_profile is None):
        yield f"{here[key]}: {_SECCOMP}"
    key = APP_ARMOR_CONTAINER + container.name
    annotation = metadata.annotations.get(key)
    # For pods, `sync_app_armor_annotations` has warned already.
    if annotation is None or not is_template or (context is not None and context.app_armor_profile is not None):
        return
    of_pod = spec.security_context.app_armor_profile if spec.security_context is not None else None
    if of_pod is None or of_pod != profile_for_annotation(annotation):
        yield f"{here[key]}: {DEPRECATED}"


def _is_plain(container: AnyContainer) -> bool:
    """Return True if `_container_warnings` would find nothing in the container."""
    for amounts in (container.resources.limits, container.resources.requests):
        for name in _BYTES:
            if name in amounts and not is_whole_in_milli(amounts[name]):
                return False
    return len(container.env) < 2 or len(set(map(_name, container.env))) == len(container.env)


def _container_warnings(container: AnyContainer, path: Path) -> Iterator[str]:
    resources = container.resources
    if resources.limits or resources.requests:
        for name in _BYTES:
            yield from fractional_byte_warnings(resources.limits, name, path.child("resources", "limits"))
            yield from fractional_byte_warnings(resources.requests, name, path.child("resources", "requests"))
    seen: set[str] = set()
    for index, variable in enumerate(container.env):
        if variable.name not in seen:
            seen.add(variable.name)
            continue
        reference = f"$({variable.name})"
        # A definition that refers to the previous one is legitimate.
        if variable.value_from is not None or variable.value == reference or reference not in variable.value:
            text = f"hides previous definition of {quote(variable.name)}, which may be dropped when using apply"
            yield f"{(path / 'env')[index]}: {text}"


def _have_plain_ports(containers: Iterable[AnyContainer]) -> bool:
    """Return True if `_port_warnings` would find nothing: no port and no name occurs twice."""
    total, numbers, names = 0, set(), set()
    for container in containers:
        for port in container.ports:
            if port.host_ip or port.name in names:
                return False
            if port.name:
                names.add(port.name)
            numbers.add((port.container_port, port.protocol))
            total += 1
    return len(numbers) == total


def _port_warnings(spec: core.PodSpec, path: Path) -> Iterator[str]:
    ports: dict[tuple[int, str], _SamePorts] = defaultdict(_SamePorts)
    named: dict[str, Path] = {}
    name_warnings: list[str] = []
    for container, where in containers_with_paths(spec, path):
        for index, port in enumerate(container.ports):
            here = (where / "ports")[index]
            if port.host_ip and port.host_port == 0:
                yield f"{here}: hostIP set without hostPort: {_go_text(port)}"
            same = ports[port.container_port, port.protocol]
            for text, other_path in same.conflicts(port):
                yield f"{here}: {text} port definition with {other_path}"
            same.add(port, here)
            if not port.name:
                continue
            if (first := named.setdefault(port.name, here)) is not here:
                name_warnings.append(
                    f"{here}: duplicate port name {quote(port.name)} with {first}, "
                    f"services and probes that select ports by name will use {first}"
                )
    yield from name_warnings


class _SamePorts:
    """Definitions of one port and protocol in pod order, indexed by host port and host address."""

    __slots__ = ("_all", "_any", "_by_host", "_with_address")

    def __init__(self) -> None:
        self._all: list[tuple[core.ContainerPort, Path]] = []
        self._any: list[int] = []
        """Positions in `_all` of definitions without a host port."""
        self._by_host: dict[tuple[int, str], list[int]] = {}
        self._with_address: dict[int, list[int]] = {}
        """Positions of definitions with a host address, by host port."""

    def add(self, port: core.ContainerPort, path: Path) -> None:
        """Add the definition at `path`."""
        place = len(self._all)
        self._all.append((port, path))
        if port.host_port == 0:
            self._any.append(place)
            return
        self._by_host.setdefault((port.host_port, port.host_ip), []).append(place)
        if port.host_ip:
            self._with_address.setdefault(port.host_port, []).append(place)

    def conflicts(self, port: core.ContainerPort) -> Iterator[tuple[str, Path]]:
        """Yield the kind of conflict and the path of each earlier definition with which `port` conflicts, in pod order."""
        if port.host_port == 0:
            for other, path in self._all:
                equal = other.host_port == 0 and other.host_ip == port.host_ip
                yield "duplicate" if equal else "overlapping", path
            return
        same = self._by_host.get((port.host_port, port.host_ip), ())
        unlike = (
            self._by_host.get((port.host_port, ""), ()) if port.host_ip else self._with_address.get(port.host_port, ())
        )
        found = ((same, "duplicate"), (self._any, "overlapping"), (unlike, "dangerously ambiguous"))
        for place, text in sorted((place, text) for places, text in found for place in places):
            yield text, self._all[place][1]


def _go_text(port: core.ContainerPort) -> str:
    """Return the port in the format of Go's %+v."""
    return (
        f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
        f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
    )


def _affinity_warnings(affinity: core.Affinity, path: Path) -> Iterator[str]:
    for terms, name in ((affinity.pod_affinity, "podAffinity"), (affinity.pod_anti_affinity, "podAntiAffinity")):
        if terms is None:
            continue
        here = path / name
        for index, term in enumerate(terms.required_during_scheduling_ignored_during_execution):
            if term.label_selector is None:
                where = (here / "requiredDuringSchedulingIgnoredDuringExecution")[index] / "labelSelector"
                yield f"{where}: {_NULL_SELECTOR}"
        for index, weighted in enumerate(terms.preferred_during_scheduling_ignored_during_execution):
            if weighted.pod_affinity_term.label_selector is None:
                where = (here / "preferredDuringSchedulingIgnoredDuringExecution")[index]
                yield f"{where.child('podAffinityTerm', 'labelSelector')}: {_NULL_SELECTOR}"
