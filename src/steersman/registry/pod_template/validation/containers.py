"""Validation of the containers of a pod: regular, init and ephemeral containers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer, is_sidecar
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.formats import is_dns1123_label, is_valid_port_name, is_valid_port_num
from steersman.registry.pod_template.validation.env import validate_env, validate_env_from
from steersman.registry.pod_template.validation.mounts import validate_volume_devices, validate_volume_mounts
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.probes import validate_lifecycle, validate_probes
from steersman.registry.pod_template.validation.resources import validate_container_resources, validate_resize_policies
from steersman.registry.pod_template.validation.security import validate_security_context
from steersman.registry.pod_template.validation.volumes import PULL_POLICIES, Volumes, validate_pull_policy

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")

_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_MAX_RESTART_RULES: Final = 20
_MAX_EXIT_CODES: Final = 255
_NOT_IN_INIT: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_IN_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_NO_PADDING: Final = "must not have leading or trailing whitespace"

_FORBIDDEN_IN_EPHEMERAL: Final = (
    ("ports", "ports"),
    ("resources", "resources"),
    ("resize_policy", "resizePolicy"),
    ("restart_policy", "restartPolicy"),
    ("restart_policy_rules", "restartPolicyRules"),
    ("liveness_probe", "livenessProbe"),
    ("readiness_probe", "readinessProbe"),
    ("startup_probe", "startupProbe"),
    ("lifecycle", "lifecycle"),
)
is_usual_image: Final = re.compile("[!-~]*").fullmatch
"""Matches an image without white space."""
_NO_RESOURCES: Final = core.ResourceRequirements()


class PodScope(NamedTuple):
    """The pod of a container, as far as validation needs it. `claims` are the names of its resource claims."""

    spec: core.PodSpec
    volumes: Volumes
    claims: Collection[str]
    options: PodValidationOptions

    @property
    def host_users(self) -> bool:
        """True if the pod is in the host's user namespace."""
        return self.spec.host_users is not False


def _validate_common(container: AnyContainer, scope: PodScope, path: Path) -> Iterator[FieldError]:
    """Validate the fields of all types of containers."""
    if not container.name:
        yield required(path / "name")
    else:
        for message in is_dns1123_label(container.name):
            yield invalid(path / "name", container.name, message)
    if not container.image:
        yield required(path / "image")
    policy = container.termination_message_policy
    if not policy:
        yield required(path / "terminationMessagePolicy")
    elif policy not in _MESSAGE_POLICIES:
        yield not_supported(path / "terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    # Most containers lack most fields, and a missing field should cost neither a path nor a generator.
    if container.ports:
        yield from _validate_ports(container.ports, path / "ports")
    if container.env:
        yield from validate_env(container.env, path / "env")
    if container.env_from:
        yield from validate_env_from(container.env_from, path / "envFrom")
    if container.volume_mounts:
        yield from validate_volume_mounts(container, scope.volumes, path / "volumeMounts")
    if container.volume_devices:
        yield from validate_volume_devices(container, scope.volumes, path / "volumeDevices")
    if container.image_pull_policy not in PULL_POLICIES:
        yield from validate_pull_policy(container.image_pull_policy, path / "imagePullPolicy")
    if container.resources != _NO_RESOURCES:
        yield from validate_container_resources(container.resources, scope.claims, path / "resources", scope.options)
    if container.resize_policy:
        yield from validate_resize_policies(container.resize_policy, path / "resizePolicy", scope.spec.restart_policy)
    if container.security_context is not None:
        yield from validate_security_context(
            container.security_context,
            path / "securityContext",
            host_users=scope.host_users,
            allow_privileged=scope.options.allow_privileged,
        )


def _validate_ports(ports: list[core.ContainerPort], path: Path) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        if port.name:
            messages = is_valid_port_name(port.name)
            for message in messages:
                # Upstream's loop over messages reuses the index, but not the path made from it.
                yield invalid(path[index] / "name", port.name, message)
            if not messages and port.name in names:
                yield duplicate(path[index] / "name", port.name)
            elif not messages:
                names.add(port.name)
        if port.container_port == 0:
            yield required(path[index] / "containerPort")
        else:
            for message in is_valid_port_num(port.container_port):
                yield invalid(path[index] / "containerPort", port.container_port, message)
        if port.host_port != 0:
            for message in is_valid_port_num(port.host_port):
                yield invalid(path[index] / "hostPort", port.host_port, message)
        if not port.protocol:
            yield required(path[index] / "protocol")
        elif port.protocol not in PROTOCOLS:
            yield not_supported(path[index] / "protocol", port.protocol, PROTOCOLS)


def validate_containers(scope: PodScope, path: Path) -> Iterator[FieldError]:
    """Validate the regular containers: at least one, with unique names and host ports."""
    containers = scope.spec.containers
    if not containers:
        yield required(path)
        return
    grace_period = scope.spec.termination_grace_period_seconds
    names: set[str] = set()
    for index, container in enumerate(containers):
        here = path[index]
        yield from _validate_common(container, scope, here)
        if container.name in names:
            yield duplicate(here / "name", container.name)
        names.add(container.name)
        if container.lifecycle is not None:
            yield from validate_lifecycle(container.lifecycle, grace_period, here / "lifecycle", scope.spec.os)
        if container.liveness_probe or container.readiness_probe or container.startup_probe:
            yield from validate_probes(container, grace_period, here)
        if container.restart_policy is not None or container.restart_policy_rules:
            yield from _validate_restart_policy(container, here)
    yield from _validate_host_ports(enumerate(containers), path)


def _validate_restart_policy(container: core.Container, path: Path) -> Iterator[FieldError]:
    rules = container.restart_policy_rules
    if container.restart_policy is None:
        if rules:
            yield required(path / "restartPolicy", "must specify restartPolicy when restart rules are used")
    elif container.restart_policy not in RESTART_POLICIES:
        yield not_supported(path / "restartPolicy", container.restart_policy, RESTART_POLICIES)
    if len(rules) > _MAX_RESTART_RULES:
        yield too_many(path / "restartPolicyRules", len(rules), _MAX_RESTART_RULES)
    for index, rule in enumerate(rules):
        yield from _validate_restart_rule(rule, (path / "restartPolicyRules")[index])


def _validate_restart_rule(rule: core.ContainerRestartRule, path: Path) -> Iterator[FieldError]:
    if rule.action not in RESTART_ACTIONS:
        yield not_supported(path / "action", rule.action, RESTART_ACTIONS)
    codes, here = rule.exit_codes, path / "exitCodes"
    if codes is None:
        yield required(here, "must be specified")
        return
    if codes.operator not in ("In", "NotIn"):
        yield not_supported(here / "operator", codes.operator, ("In", "NotIn"))
    if len(codes.values) > _MAX_EXIT_CODES:
        yield too_many(here / "values", len(codes.values), _MAX_EXIT_CODES)


def _validate_host_ports(containers: Iterable[tuple[int, AnyContainer]], path: Path) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, container in containers:
        for number, port in enumerate(container.ports):
            if port.host_port == 0:
                continue
            address = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if address in taken:
                yield duplicate((path[index] / "ports")[number] / "hostPort", address)
            taken.add(address)


def validate_init_containers(scope: PodScope, path: Path) -> Iterator[FieldError]:
    """Validate init containers; sidecars among them may have the fields of regular containers."""
    names = {container.name for container in scope.spec.containers or ()}
    grace_period = scope.spec.termination_grace_period_seconds
    for index, container in enumerate(scope.spec.init_containers):
        here = path[index]
        yield from _validate_common(container, scope, here)
        if container.restart_policy is not None or container.restart_policy_rules:
            if container.restart_policy is None:
                text = "must specify restartPolicy when restart rules are used"
                yield required(here / "restartPolicy", text)
            else:
                yield from _validate_restart_policy(container, here)
        if container.name in names:
            yield duplicate(here / "name", container.name)
        elif container.name:
            names.add(container.name)
        # Upstream validates each container as a list of one, so its errors are about item 0.
        yield from _validate_host_ports(((0, container),), path)
        if is_sidecar(container):
            if container.lifecycle is not None:
                yield from validate_lifecycle(container.lifecycle, grace_period, here / "lifecycle", scope.spec.os)
            yield from validate_probes(container, grace_period, here)
        else:
            yield from _validate_plain_init_container(container, here, scope.options)


def _validate_plain_init_container(
    container: core.Container, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    for value, name in (
        (container.lifecycle, "lifecycle"),
        (container.liveness_probe, "livenessProbe"),
        (container.readiness_probe, "readinessProbe"),
        (container.startup_probe, "startupProbe"),
    ):
        if value is not None:
            yield forbidden(path / name, _NOT_IN_INIT)
    if options.allow_restart_resize_of_init_containers:
        return
    for index, policy in enumerate(container.resize_policy):
        if policy.restart_policy == "RestartContainer":
            text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid((path / "resizePolicy")[index] / "restartPolicy", policy.restart_policy, text)


def validate_ephemeral_containers(scope: PodScope, path: Path) -> Iterator[FieldError]:
    """Validate ephemeral containers, which may not have the fields of long-running containers."""
    if not scope.spec.ephemeral_containers:
        return
    others = {container.name for container in (*(scope.spec.containers or ()), *scope.spec.init_containers)}
    names = set(others)
    for index, container in enumerate(scope.spec.ephemeral_containers):
        here = path[index]
        yield from _validate_common(container, scope, here)
        if trim_space(container.image) != container.image:
            yield invalid(here / "image", container.image, _NO_PADDING)
        if container.name in names:
            yield duplicate(here / "name", container.name)
        names.add(container.name)
        target = container.target_container_name
        if target and target not in others:
            yield not_found(here / "targetContainerName", target)
        for attribute, name in _FORBIDDEN_IN_EPHEMERAL:
            value = getattr(container, attribute)
            if value not in (None, []) and value != _NO_RESOURCES:
                yield forbidden(here / name, _NOT_IN_EPHEMERAL)
        for number, mount in enumerate(container.volume_mounts):
            if mount.sub_path:
                yield forbidden((here / "volumeMounts")[number] / "subPath", _NOT_IN_EPHEMERAL)
            if mount.sub_path_expr:
                yield forbidden((here / "volumeMounts")[number] / "subPathExpr", _NOT_IN_EPHEMERAL)


def validate_images_of_pod(containers: Iterable[AnyContainer], path: Path) -> Iterator[FieldError]:
    """Forbid white space around images, which only templates may have."""
    for index, container in enumerate(containers):
        if not is_usual_image(container.image) and trim_space(container.image) != container.image:
            yield invalid(path[index] / "image", container.image, _NO_PADDING)
