"""Validation of security contexts of pods and containers, and of host namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_valid_group_id, is_valid_user_id
from steersman.machinery.validation.leaves import validate_supported, validate_with
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.profiles import validate_app_armor_profile, validate_seccomp_profile
from steersman.registry.pod_template.validation.windows import validate_windows_options
from steersman.registry.pod_template.visiting import containers_with_paths
from steersman.registry.printing.internal_form import internal_text

PROC_MOUNTS: Final = ("Default", "Unmasked")
GROUP_CHANGE_POLICIES: Final = ("Always", "OnRootMismatch")
GROUPS_POLICIES: Final = ("Merge", "Strict")
SELINUX_CHANGE_POLICIES: Final = ("MountOption", "Recursive")

_LONGEST_SYSCTL: Final = 253
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_is_sysctl: Final = re.compile(_SYSCTL).fullmatch
_SYSCTL_ERROR: Final = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
_IPC_SYSCTLS: Final = frozenset(
    f"kernel.{name}"
    for name in ("sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni", "msg")
)


def validate_security_context(
    context: core.SecurityContext, path: Path, *, host_users: bool, allow_privileged: bool
) -> Iterator[FieldError]:
    """Validate the security context of a container."""
    if context.privileged and not allow_privileged:
        yield forbidden(path / "privileged", "disallowed by cluster policy")
    if context.run_as_user is not None or context.run_as_group is not None:
        yield from _validate_ids(context, path)
    if context.proc_mount is not None:
        here = path / "procMount"
        yield from validate_supported(context.proc_mount, PROC_MOUNTS, here)
        if host_users and context.proc_mount == "Unmasked":
            yield invalid(here, context.proc_mount, "`hostUsers` must be false to use `Unmasked`")
    if context.seccomp_profile is not None:
        yield from validate_seccomp_profile(context.seccomp_profile, path / "seccompProfile")
    if context.allow_privilege_escalation is False:
        yield from _validate_no_escalation(context, path)
    if context.windows_options is not None:
        yield from validate_windows_options(context.windows_options, path / "windowsOptions")
    if context.app_armor_profile is not None:
        yield from validate_app_armor_profile(context.app_armor_profile, path / "appArmorProfile")


def _validate_no_escalation(context: core.SecurityContext, path: Path) -> Iterator[FieldError]:
    if context.privileged:
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(path, internal_text(context), text)
    if context.capabilities is not None:
        for capability in context.capabilities.add:
            if capability == "CAP_SYS_ADMIN":
                text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield invalid(path, internal_text(context), text)


def _validate_ids(context: core.SecurityContext | core.PodSecurityContext, path: Path) -> Iterator[FieldError]:
    if context.run_as_user is not None:
        yield from validate_with(is_valid_user_id, context.run_as_user, path / "runAsUser")
    if context.run_as_group is not None:
        yield from validate_with(is_valid_group_id, context.run_as_group, path / "runAsGroup")


def validate_pod_security_context(
    spec: core.PodSpec, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate the security context of a pod; `path` is that of the spec."""
    context, here = spec.security_context, path / "securityContext"
    if context is None:
        return
    if context.fs_group is not None:
        yield from validate_with(is_valid_group_id, context.fs_group, here / "fsGroup")
    if context.run_as_user is not None or context.run_as_group is not None:
        yield from _validate_ids(context, here)
    for index, group in enumerate(context.supplemental_groups):
        yield from validate_with(is_valid_group_id, group, (here / "supplementalGroups")[index])
    if spec.share_process_namespace and spec.host_pid:
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(here / "shareProcessNamespace", True, text)
    if context.sysctls:
        yield from _validate_sysctls(spec, context.sysctls, here / "sysctls", options)
    policy = context.fs_group_change_policy
    if policy is not None and policy not in GROUP_CHANGE_POLICIES:
        yield not_supported(here / "fsGroupChangePolicy", policy, GROUP_CHANGE_POLICIES)
    if context.seccomp_profile is not None:
        yield from validate_seccomp_profile(context.seccomp_profile, here / "seccompProfile")
    if context.windows_options is not None:
        yield from validate_windows_options(context.windows_options, here / "windowsOptions")
    if context.app_armor_profile is not None:
        yield from validate_app_armor_profile(context.app_armor_profile, here / "appArmorProfile")
    groups = context.supplemental_groups_policy
    if groups is not None and groups not in GROUPS_POLICIES:
        yield not_supported(here / "supplementalGroupsPolicy", groups, GROUPS_POLICIES)
    change = context.se_linux_change_policy
    allowed = SELINUX_CHANGE_POLICIES if options.allow_any_selinux_change_policy else ("Recursive",)
    if change is not None and change not in allowed:
        yield not_supported(here / "seLinuxChangePolicy", change, allowed)


def _validate_sysctls(
    spec: core.PodSpec, sysctls: list[core.Sysctl], path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        here = path[index] / "name"
        if not sysctl.name:
            yield required(here)
        elif len(sysctl.name) > _LONGEST_SYSCTL or not _is_sysctl(sysctl.name):
            yield invalid(here, sysctl.name, _SYSCTL_ERROR)
        elif sysctl.name in seen:
            yield duplicate(here, sysctl.name)
        if not options.allow_host_sysctls and (text := host_sysctl_error(sysctl.name, spec)):
            yield invalid(here, sysctl.name, text)
        seen.add(sysctl.name)


def host_sysctl_error(name: str, spec: core.PodSpec) -> str:
    """Return an error text if a sysctl belongs to a namespace that the pod shares with the host, otherwise ""."""
    first = next((char for char in name if char in "./"), ".")
    if first == "/":  # net/ipv4/conf/eno2.100/rp_filter
        name = name.translate({ord("."): "/", ord("/"): "."})
    name = name.partition("*")[0]
    if spec.host_network and name.startswith("net."):
        return "may not be specified when 'hostNetwork' is true"
    if spec.host_ipc and (name in _IPC_SYSCTLS or name.startswith("fs.mqueue.")):
        return "may not be specified when 'hostIPC' is true"
    return ""


def validate_host_users(spec: core.PodSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Forbid other host namespaces to a pod in a user namespace of its own."""
    if spec.host_users is not False:
        return
    if spec.host_network and not options.allow_host_network_user_namespaces:
        yield forbidden(path / "hostNetwork", "when `hostUsers` is false")
    if spec.host_pid:
        yield forbidden(path / "HostPID", "when `hostUsers` is false")
    if spec.host_ipc:
        yield forbidden(path / "HostIPC", "when `hostUsers` is false")
    if not options.allow_user_namespaces_with_devices:
        for container, here in containers_with_paths(spec, path):
            if container.volume_devices:
                yield forbidden(here / "volumeDevices", "when `hostUsers` is false")


def validate_host_ports(spec: core.PodSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate that host ports equal container ports on the host's network; templates may omit host ports."""
    if not spec.host_network:
        return
    for index, container in enumerate(spec.containers or ()):
        for number, port in enumerate(container.ports):
            if (options.is_pod or port.host_port != 0) and port.host_port != port.container_port:
                here = ((path / "containers")[index] / "ports")[number] / "hostPort"
                yield invalid(here, port.host_port, "must match `containerPort` when `hostNetwork` is true")
