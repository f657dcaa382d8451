"""Kernel parameters that a pod may set (pkg/kubelet/sysctl)."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Pod
from steersman.machinery.errors.field import quote

REASON: Final = "SysctlForbidden"
_IPC: Final = "kernel.shm_rmid_forced"
_NET: Final = frozenset(
    f"net.ipv4.{name}"
    for name in (
        "ip_local_port_range",
        "ip_local_reserved_ports",
        "ip_unprivileged_port_start",
        "ping_group_range",
        "tcp_fin_timeout",
        "tcp_keepalive_intvl",
        "tcp_keepalive_probes",
        "tcp_keepalive_time",
        "tcp_rmem",
        "tcp_syncookies",
        "tcp_wmem",
    )
)
"""Parameters that are namespaced by pod and do not affect other pods."""


def forbidden(pod: Pod) -> str:
    """Return the error for a kernel parameter that a pod may not set; "" if it may set all of them."""
    security = pod.spec.security_context
    for each in () if security is None else security.sysctls:
        name = _normalized(each.name)
        if name != _IPC and name not in _NET:
            return f"forbidden sysctl: {quote(name)} not allowlisted"
        if name == _IPC and pod.spec.host_ipc:
            return f"forbidden sysctl: {quote(name)} not allowed with host IPC enabled"
        if name in _NET and pod.spec.host_network:
            return f"forbidden sysctl: {quote(name)} not allowed with host Net enabled"
    return ""


def _normalized(name: str) -> str:
    """Return a name with dots as separators; its first separator tells which of both it uses."""
    if "/" not in name or 0 <= name.find(".") < name.find("/"):
        return name
    return name.translate({ord("/"): ".", ord("."): "/"})
