"""Validation of the Windows options of pods, and of fields that an operating system does not support."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import is_dns1123_subdomain
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.visiting import containers_with_paths

OPERATING_SYSTEMS: Final = ("linux", "windows")

_LARGEST_CREDENTIAL_SPEC: Final = 64 * 1024
_LONGEST_DOMAIN: Final = 256
_LONGEST_USER: Final = 104
_has_control: Final = re.compile(r"[\x00-\x1f\x7f]").search
_is_net_bios: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_DNS_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_dns: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*").fullmatch
_has_bad_character: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_is_dots_and_spaces: Final = re.compile(r"[. ]+").fullmatch

_NOT_ON_WINDOWS: Final = "cannot be set for a windows pod"
_NOT_ON_LINUX: Final = "windows options cannot be set for a linux pod"


def validate_windows_options(options: core.WindowsSecurityContextOptions, path: Path) -> Iterator[FieldError]:
    """Validate the Windows options of a security context."""
    if options.gmsa_credential_spec_name is not None:
        for message in is_dns1123_subdomain(options.gmsa_credential_spec_name):
            yield invalid(path / "gmsaCredentialSpecName", options.gmsa_credential_spec_name, message)
    if (spec := options.gmsa_credential_spec) is not None:
        if not spec:
            yield invalid(path / "gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string")
        elif len(spec.encode()) > _LARGEST_CREDENTIAL_SPEC:
            yield invalid(path / "gmsaCredentialSpec", spec, "gmsaCredentialSpec size must be under 64 KiB")
    if options.run_as_user_name is not None:
        for fault in _user_name_faults(options.run_as_user_name):
            yield invalid(path / "runAsUserName", options.run_as_user_name, f"runAsUserName{fault}")


def _user_name_faults(name: str) -> Iterator[str]:
    r"""Yield the errors of `DOMAIN\user` or `user`."""
    if not name:
        yield " cannot be an empty string"
        return
    if _has_control(name):
        yield " cannot contain control characters"
        return
    if name.count("\\") > 1:
        yield " cannot contain more than one backslash"
        return
    domain, backslash, user = name.rpartition("\\")
    if len(domain.encode()) >= _LONGEST_DOMAIN:
        yield f"'s Domain length must be under {_LONGEST_DOMAIN} characters"
    if backslash and not (_is_net_bios(domain) or _is_dns(domain)):
        yield "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "'s User cannot be empty"
    elif len(user.encode()) > _LONGEST_USER:
        yield f"'s User length must not be longer than {_LONGEST_USER} characters"
    if _is_dots_and_spaces(user):
        yield "'s User cannot contain only periods or spaces"
    if _has_bad_character(user):
        yield r"""'s User cannot contain the following characters: "/\:;|=,+*?<>@[]"""


def mentions_windows(spec: core.PodSpec, containers: Iterable[AnyContainer]) -> bool:
    """Return True if the pod or a container has options for Windows, which is rare."""
    context = spec.security_context
    if context is not None and context.windows_options is not None:
        return True
    for container in containers:
        own = container.security_context
        if own is not None and own.windows_options is not None:
            return True
    return False


def validate_host_process(spec: core.PodSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate HostProcess containers: all or none, and on the host's network."""
    of_pod = _host_process(spec.security_context)
    total = of_host = 0
    for container, here in containers_with_paths(spec, path):
        total += 1
        own = _host_process(container.security_context)
        if of_pod is not None and own is not None and of_pod != own:
            text = f"pod hostProcess value must be identical if both are specified, was {to_lower(str(of_pod))}"
            yield invalid(here.child("securityContext", "windowsOptions", "hostProcess"), own, text)
        of_host += bool(of_pod if own is None else own)
    if not of_host:
        return
    if of_host != total:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", text)
    if not spec.host_network:
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(path / "hostNetwork", False, text)
    if not options.allow_privileged:
        yield forbidden(path, "hostProcess containers are disallowed by cluster policy")


def _host_process(context: core.SecurityContext | core.PodSecurityContext | None) -> bool | None:
    if context is None or context.windows_options is None:
        return None
    return context.windows_options.host_process


def validate_os(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    """Validate the operating system, and forbid fields that it does not support."""
    if spec.os is None:
        return
    if not spec.os.name:
        yield required(path.child("os", "name"))
    elif spec.os.name not in OPERATING_SYSTEMS:
        yield not_supported(path / "os", spec.os.name, OPERATING_SYSTEMS)
    elif spec.os.name == "linux":
        yield from _validate_linux(spec, path)
    else:
        yield from _validate_windows(spec, path)


def _validate_linux(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    if spec.security_context is not None and spec.security_context.windows_options is not None:
        yield forbidden(path.child("securityContext", "windowsOptions"), _NOT_ON_LINUX)
    for container, here in containers_with_paths(spec, path):
        if container.security_context is not None and container.security_context.windows_options is not None:
            yield forbidden(here.child("securityContext", "windowsOptions"), _NOT_ON_LINUX)


_LINUX_ONLY_POD_FIELDS: Final = (
    ("app_armor_profile", "securityContext.appArmorProfile"),
    ("se_linux_options", "securityContext.seLinuxOptions"),
    ("host_users", "hostUsers"),
    ("host_pid", "hostPID"),
    ("host_ipc", "hostIPC"),
    ("seccomp_profile", "securityContext.seccompProfile"),
    ("fs_group", "securityContext.fsGroup"),
    ("fs_group_change_policy", "securityContext.fsGroupChangePolicy"),
    ("sysctls", "securityContext.sysctls"),
    ("share_process_namespace", "shareProcessNamespace"),
    ("run_as_user", "securityContext.runAsUser"),
    ("run_as_group", "securityContext.runAsGroup"),
    ("supplemental_groups", "securityContext.supplementalGroups"),
    ("supplemental_groups_policy", "securityContext.supplementalGroupsPolicy"),
    ("se_linux_change_policy", "securityContext.seLinuxChangePolicy"),
)
_LINUX_ONLY_CONTAINER_FIELDS: Final = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
    ("seccomp_profile", "seccompProfile"),
    ("capabilities", "capabilities"),
    ("read_only_root_filesystem", "readOnlyRootFilesystem"),
    ("privileged", "privileged"),
    ("allow_privilege_escalation", "allowPrivilegeEscalation"),
    ("proc_mount", "procMount"),
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
)
"""Fields that Windows does not support, in upstream's order; those of host namespaces are in the spec."""
_SPEC_FIELDS: Final = frozenset({"host_users", "host_pid", "host_ipc", "share_process_namespace"})


def _validate_windows(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    context = spec.security_context or core.PodSecurityContext()
    for attribute, name in _LINUX_ONLY_POD_FIELDS:
        value = getattr(spec if attribute in _SPEC_FIELDS else context, attribute)
        if value is not None and value != [] and (attribute not in ("host_pid", "host_ipc") or value):
            yield forbidden(path.child(*name.split(".")), _NOT_ON_WINDOWS)
    for container, here in containers_with_paths(spec, path):
        if container.security_context is None:
            continue
        for attribute, name in _LINUX_ONLY_CONTAINER_FIELDS:
            if getattr(container.security_context, attribute) is not None:
                yield forbidden(here.child("securityContext", name), _NOT_ON_WINDOWS)
