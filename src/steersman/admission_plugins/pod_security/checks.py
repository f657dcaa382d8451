"""Checks of the Pod Security Standards, each with its variants by Kubernetes version.

Follows https://kubernetes.io/docs/concepts/security/pod-security-standards/ and the output of
k8s.io/pod-security-admission 1.36. A check gets a pod's metadata and spec and returns a violation, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from steersman.admission_plugins.pod_security.levels import BASELINE, PRIVILEGED, RESTRICTED, LevelVersion
from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.field import quote

Context = core.PodSecurityContext | core.SecurityContext


class Violation(NamedTuple):
    """A violation: a short reason, and details with names and values."""

    reason: str
    detail: str = ""


Function = Callable[[ObjectMeta, core.PodSpec], Violation | None]


class Check(NamedTuple):
    """One rule of a level.

    `versions` has the minor versions in which the rule changed, with the function from then on. `overrides` has the ids
    of lower-level rules that this rule replaces.
    """

    id: str
    level: str
    versions: tuple[tuple[int, Function], ...]
    overrides: tuple[str, ...] = ()


def violations(level: LevelVersion, metadata: ObjectMeta, spec: core.PodSpec) -> list[Violation]:
    """Return all violations of a level by a pod."""
    if level.level == PRIVILEGED:
        return []
    found = (check(metadata, spec) for check in _checks(level.level, min(level.minor, _NEWEST)))
    return [each for each in found if each is not None]


def reasons(found: Iterable[Violation]) -> str:
    """Return the reasons of violations, comma-separated."""
    return ", ".join(each.reason for each in found)


def details(found: Iterable[Violation]) -> str:
    """Return the reasons and details of violations, comma-separated."""
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in found)


# Texts about containers and pods


def _containers(spec: core.PodSpec) -> Iterator[AnyContainer]:
    yield from spec.init_containers
    yield from spec.containers or ()
    yield from spec.ephemeral_containers


def _quoted(items: Iterable[str]) -> str:
    """Return texts in quotes, comma-separated. As upstream, the texts are not escaped."""
    return ", ".join(f'"{each}"' for each in items)


def _plural(items: Any, one: str, more: str = "") -> str:
    return one if len(items) == 1 else more or f"{one}s"


def _containers_text(names: list[str], one: str = "container") -> str:
    return f"{_plural(names, one)} {_quoted(names)}"


class _FieldSetters:
    """The pod and containers whose security context has forbidden values, and these values."""

    def __init__(self, spec: core.PodSpec, bad_values: Callable[[Any], Iterable[str]]) -> None:
        """Check all security contexts of a pod; `bad_values` returns the forbidden values in one."""
        self.values: set[str] = set()
        self.pod = self._has_bad_value(spec.security_context, bad_values)
        self.containers = [
            each.name for each in _containers(spec) if self._has_bad_value(each.security_context, bad_values)
        ]

    def _has_bad_value(self, context: Context | None, bad_values: Callable[[Any], Iterable[str]]) -> bool:
        found = tuple(bad_values(context)) if context is not None else ()
        self.values.update(found)
        return bool(found)

    def __bool__(self) -> bool:
        return self.pod or bool(self.containers)

    def __str__(self) -> str:
        return " and ".join(self.parts())

    def parts(self) -> list[str]:
        return [*(["pod"] if self.pod else ()), *([_containers_text(self.containers)] if self.containers else ())]


# Baseline

_APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_PROFILES: Final = ("RuntimeDefault", "Localhost")


def _app_armor_profile(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    def bad_values(context: Context) -> tuple[str, ...]:
        profile = context.app_armor_profile
        return (profile.type,) if profile is not None and profile.type not in _PROFILES else ()

    setters = _FieldSetters(spec, bad_values)
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in metadata.annotations.items()
        if key.startswith(_APP_ARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if not setters and not annotations:
        return None
    values = [*sorted(setters.values), *annotations]
    who = [*setters.parts(), *([_plural(annotations, "annotation")] if annotations else ())]
    return Violation(
        _plural(values, "forbidden AppArmor profile"),
        f"{' and '.join(who)} must not set AppArmor profile type to {_quoted(values)}",
    )


_DEFAULT_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)


def _added_capabilities(spec: core.PodSpec, allowed: frozenset[str]) -> str:
    """Return a text about containers that add capabilities outside `allowed`, "" if none does."""
    names, added = [], set()
    for container in _containers(spec):
        context = container.security_context
        if context is not None and context.capabilities is not None:
            beyond = {each for each in context.capabilities.add if each not in allowed}
            if beyond:
                names.append(container.name)
                added |= beyond
    if not names:
        return ""
    return f"{_containers_text(names)} must not include {_quoted(sorted(added))} in securityContext.capabilities.add"


def _capabilities_baseline(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    detail = _added_capabilities(spec, _DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", detail) if detail else None


def _host_namespaces(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    shared = (("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc))
    found = [f"{name}=true" for name, value in shared if value]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_path_volumes(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    found = [volume.name for volume in spec.volumes if volume.host_path is not None]
    return Violation("hostPath volumes", _containers_text(found, "volume")) if found else None


def _host_ports(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    names, ports = [], set()
    for container in _containers(spec):
        used = {str(port.host_port) for port in container.ports if port.host_port}
        if used:
            names.append(container.name)
            ports |= used
    if not names:
        return None
    uses = f"{_plural(names, 'uses', 'use')} {_plural(ports, 'hostPort')}"
    return Violation("hostPort", f"{_containers_text(names)} {uses} {', '.join(sorted(ports))}")


def _probed_hosts(container: AnyContainer) -> Iterator[str]:
    """Yield the hosts in a container's probes and lifecycle hooks, which a kubelet would contact instead of the pod."""
    handlers: list[Any] = [container.liveness_probe, container.readiness_probe, container.startup_probe]
    if container.lifecycle is not None:
        handlers += [container.lifecycle.post_start, container.lifecycle.pre_stop]
    for handler in handlers:
        if handler is not None:
            for action in (handler.http_get, handler.tcp_socket):
                if action is not None and action.host:
                    yield action.host


def _host_probes(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    names: set[str] = set()
    hosts: set[str] = set()
    for container in _containers(spec):
        if found := set(_probed_hosts(container)):
            names.add(container.name)
            hosts |= found
    if not names:
        return None
    uses = f"{_plural(names, 'uses', 'use')} {_plural(hosts, 'probe or lifecycle host')}"
    return Violation("probe or lifecycle host", f"{_containers_text(sorted(names))} {uses} {_quoted(sorted(hosts))}")


def _privileged(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    names = [
        each.name
        for each in _containers(spec)
        if each.security_context is not None and each.security_context.privileged
    ]
    return (
        Violation("privileged", f"{_containers_text(names)} must not set securityContext.privileged=true")
        if names
        else None
    )


def _proc_mount(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    names, types = [], set()
    for container in _containers(spec):
        context = container.security_context
        if context is not None and context.proc_mount is not None and context.proc_mount != "Default":
            names.append(container.name)
            types.add(context.proc_mount)
    if not names:
        return None
    return Violation(
        "procMount", f"{_containers_text(names)} must not set securityContext.procMount to {_quoted(sorted(types))}"
    )


def _unless_in_user_namespace(check: Function) -> Function:
    """Return a check that passes pods with a user namespace of their own."""
    return lambda metadata, spec: None if spec.host_users is False else check(metadata, spec)


_SE_LINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t")


def _se_linux_options(allowed: tuple[str, ...]) -> Function:
    def check(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
        types: set[str] = set()

        def bad_values(context: Context) -> Iterator[str]:
            options = context.se_linux_options
            if options is None:
                return
            if options.type not in allowed:
                types.add(options.type)
                yield "type"
            if options.user:
                yield "user"
            if options.role:
                yield "role"

        setters = _FieldSetters(spec, bad_values)
        if not setters:
            return None
        data = [f"{_plural(types, 'type')} {_quoted(sorted(types))}"] if types else []
        data += [f"{part} may not be set" for part in ("user", "role") if part in setters.values]
        return Violation("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}")

    return check


_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"


def _seccomp_annotations(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    forbidden = set()
    for key in (_SECCOMP_POD, *(_SECCOMP_CONTAINER + container.name for container in _containers(spec))):
        value = metadata.annotations.get(key)
        if (
            value is not None
            and value not in ("runtime/default", "docker/default")
            and not value.startswith("localhost/")
        ):
            forbidden.add(f"{key}={quote(value)}")
    if not forbidden:
        return None
    return Violation("seccompProfile", f"forbidden {_plural(forbidden, 'annotation')} {', '.join(sorted(forbidden))}")


def _bad_seccomp(context: Context) -> tuple[str, ...]:
    profile = context.seccomp_profile
    return (profile.type,) if profile is not None and profile.type not in _PROFILES else ()


def _seccomp_baseline(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    setters = _FieldSetters(spec, _bad_seccomp)
    if not setters:
        return None
    values = _quoted(sorted(setters.values))
    return Violation("seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {values}")


_SAFE_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SAFE_SYSCTLS_27: Final = _SAFE_SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SAFE_SYSCTLS_29: Final = _SAFE_SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SAFE_SYSCTLS_32: Final = _SAFE_SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def _sysctls(allowed: frozenset[str]) -> Function:
    def check(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
        if spec.security_context is None:
            return None
        found = [each.name for each in spec.security_context.sysctls if each.name not in allowed]
        return Violation("forbidden sysctls", ", ".join(found)) if found else None

    return check


def _windows_host_process(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    def bad_values(context: Context) -> tuple[str, ...]:
        options = context.windows_options
        return ("true",) if options is not None and options.host_process else ()

    setters = _FieldSetters(spec, bad_values)
    if not setters:
        return None
    return Violation("hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true")


# Restricted


def _unless_windows(check: Function) -> Function:
    """Return a check that passes Windows pods, where these fields cannot be set."""
    return lambda metadata, spec: None if spec.os is not None and spec.os.name == "windows" else check(metadata, spec)


def _allow_privilege_escalation(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    names = [
        each.name
        for each in _containers(spec)
        if each.security_context is None or each.security_context.allow_privilege_escalation is not False
    ]
    if not names:
        return None
    detail = f"{_containers_text(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


_BIND_SERVICE: Final = frozenset({"NET_BIND_SERVICE"})


def _capabilities_restricted(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    keeping = []
    for container in _containers(spec):
        context = container.security_context
        if context is None or context.capabilities is None or "ALL" not in context.capabilities.drop:
            keeping.append(container.name)
    found = [f'{_containers_text(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if added := _added_capabilities(spec, _BIND_SERVICE):
        found.append(added)
    return Violation("unrestricted capabilities", "; ".join(found)) if found else None


_VOLUME_TYPES: Final = {
    each.name: each.encode_name for each in msgspec.structs.fields(core.Volume) if each.name != "name"
}
_FREE_VOLUMES: Final = (
    "config_map",
    "csi",
    "downward_api",
    "empty_dir",
    "ephemeral",
    "image",
    "persistent_volume_claim",
    "projected",
    "secret",
)


def _restricted_volumes(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    names, types = [], set()
    for volume in spec.volumes:
        if all(getattr(volume, free) is None for free in _FREE_VOLUMES):
            names.append(volume.name)
            used = (shown for name, shown in _VOLUME_TYPES.items() if getattr(volume, name) is not None)
            types.add(next(used, "unknown"))
    if not names:
        return None
    uses = f"{_plural(names, 'uses', 'use')} {_plural(types, 'restricted volume type')}"
    return Violation("restricted volume types", f"{_containers_text(names, 'volume')} {uses} {_quoted(sorted(types))}")


def _not_setting(spec: core.PodSpec, attribute: str) -> list[str]:
    """Return the containers whose security context does not set an attribute."""
    return [
        each.name
        for each in _containers(spec)
        if each.security_context is None or getattr(each.security_context, attribute) is None
    ]


def _run_as_non_root(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    def bad_values(context: Context) -> tuple[str, ...]:
        return ("false",) if context.run_as_non_root is False else ()

    setters = _FieldSetters(spec, bad_values)
    if setters:
        return Violation("runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false")
    if spec.security_context is not None and spec.security_context.run_as_non_root:
        return None
    names = _not_setting(spec, "run_as_non_root")
    if not names:
        return None
    return Violation(
        "runAsNonRoot != true", f"pod or {_containers_text(names)} must set securityContext.runAsNonRoot=true"
    )


def _run_as_user(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    def bad_values(context: Context) -> tuple[str, ...]:
        return ("0",) if context.run_as_user == 0 else ()

    setters = _FieldSetters(spec, bad_values)
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _seccomp_restricted(metadata: ObjectMeta, spec: core.PodSpec) -> Violation | None:
    if found := _seccomp_baseline(metadata, spec):
        return found
    if spec.security_context is not None and spec.security_context.seccomp_profile is not None:
        return None
    names = _not_setting(spec, "seccomp_profile")
    if not names:
        return None
    desired = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_containers_text(names)} {desired}")


CHECKS: Final = (
    Check("appArmorProfile", BASELINE, ((0, _app_armor_profile),)),
    Check("capabilities_baseline", BASELINE, ((0, _capabilities_baseline),)),
    Check("hostNamespaces", BASELINE, ((0, _host_namespaces),)),
    Check("hostPathVolumes", BASELINE, ((0, _host_path_volumes),)),
    Check("hostPorts", BASELINE, ((0, _host_ports),)),
    Check("hostProbesAndHostLifecycle", BASELINE, ((34, _host_probes),)),
    Check("privileged", BASELINE, ((0, _privileged),)),
    Check("procMount", BASELINE, ((0, _proc_mount), (35, _unless_in_user_namespace(_proc_mount)))),
    Check(
        "seLinuxOptions",
        BASELINE,
        ((0, _se_linux_options(_SE_LINUX_TYPES)), (31, _se_linux_options((*_SE_LINUX_TYPES, "container_engine_t")))),
    ),
    Check("seccompProfile_baseline", BASELINE, ((0, _seccomp_annotations), (19, _seccomp_baseline))),
    Check(
        "sysctls",
        BASELINE,
        (
            (0, _sysctls(_SAFE_SYSCTLS)),
            (27, _sysctls(_SAFE_SYSCTLS_27)),
            (29, _sysctls(_SAFE_SYSCTLS_29)),
            (32, _sysctls(_SAFE_SYSCTLS_32)),
        ),
    ),
    Check("windowsHostProcess", BASELINE, ((0, _windows_host_process),)),
    Check(
        "allowPrivilegeEscalation",
        RESTRICTED,
        ((8, _allow_privilege_escalation), (25, _unless_windows(_allow_privilege_escalation))),
    ),
    Check(
        "capabilities_restricted",
        RESTRICTED,
        ((22, _capabilities_restricted), (25, _unless_windows(_capabilities_restricted))),
        overrides=("capabilities_baseline",),
    ),
    Check("procMount_restricted", RESTRICTED, ((35, _proc_mount),), overrides=("procMount",)),
    Check("restrictedVolumes", RESTRICTED, ((0, _restricted_volumes),), overrides=("hostPathVolumes",)),
    Check("runAsNonRoot", RESTRICTED, ((0, _run_as_non_root), (35, _unless_in_user_namespace(_run_as_non_root)))),
    Check("runAsUser", RESTRICTED, ((23, _run_as_user), (35, _unless_in_user_namespace(_run_as_user)))),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        ((19, _seccomp_restricted), (25, _unless_windows(_seccomp_restricted))),
        overrides=("seccompProfile_baseline",),
    ),
)
"""All checks, in the order in which their violations are reported."""

_NEWEST: Final = max(since for check in CHECKS for since, _ in check.versions)
"""Minor version of the last change of any check."""


@cache
def _checks(level: str, minor: int) -> tuple[Function, ...]:
    """Return the functions of a level in a version. The restricted level includes the baseline level."""
    found: dict[str, Function] = {}
    overridden: set[str] = set()
    for check in CHECKS:
        valid = [function for since, function in check.versions if since <= minor]
        if valid and level in (check.level, RESTRICTED):
            found[check.id] = valid[-1]
            overridden.update(check.overrides)
    return tuple(function for id, function in found.items() if id not in overridden)
