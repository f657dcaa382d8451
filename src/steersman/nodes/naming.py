"""Names of a pod inside itself: its hostname, its domain, its hosts file.

Follows pkg/kubelet `kubelet_pods.go` (GeneratePodHostNameAndDomain, managedHostsFileContent) and pkg/kubelet/util
(GetNodenameForKernel).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.api.core.v1 import HostAlias, Pod

CLUSTER_DOMAIN: Final = "cluster.local"
_MOST_HOSTNAME: Final = 63
_MOST_FQDN: Final = 64
"""Characters of the hostname in the kernel."""
_HEADER: Final = "# Kubernetes-managed hosts file.\n"
_HEADER_OF_NODE: Final = "# Kubernetes-managed hosts file (host network).\n"
_LOCAL: Final = (
    "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
)


def hostname_of(pod: Pod) -> str:
    """Return the pod's hostname in the kernel; without its domain if that would make it too long."""
    if pod.spec.host_network:
        return pod.spec.node_name
    name, domain = _name_and_domain(pod)
    full = f"{name}.{domain}"
    return full if _is_qualified(pod, domain) and len(full) <= _MOST_FQDN else name


def name_error(pod: Pod) -> str:
    """Return the error for a pod whose fully qualified name is too long; "" if it fits."""
    name, domain = _name_and_domain(pod)
    full = f"{name}.{domain}"
    if pod.spec.host_network or not _is_qualified(pod, domain) or len(full) <= _MOST_FQDN:
        return ""
    return (
        f"failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long ({_MOST_FQDN} "
        f"characters is the max, {len(full)} characters requested)"
    )


def hosts_file(pod: Pod) -> str:
    """Return the content of the pod's /etc/hosts."""
    name, domain = _name_and_domain(pod)
    if pod.spec.host_network:
        own = f"{_HEADER_OF_NODE}{_LOCAL}{pod.status.host_ip}\t{pod.spec.node_name}\n"
    else:
        names = f"{name}.{domain}\t{name}" if domain else name
        own = f"{_HEADER}{_LOCAL}" + "".join(f"{each.ip}\t{names}\n" for each in pod.status.pod_ips)
    return own + _aliases(pod.spec.host_aliases)


def _aliases(aliases: Sequence[HostAlias]) -> str:
    if not aliases:
        return ""
    lines = ("\t".join((each.ip, *each.hostnames)) + "\n" for each in aliases)
    return f"\n# Entries added by HostAliases.\n{''.join(lines)}"


def _name_and_domain(pod: Pod) -> tuple[str, str]:
    spec = pod.spec
    if spec.hostname_override is not None:
        return _shortened(spec.hostname_override), ""
    domain = f"{spec.subdomain}.{pod.metadata.namespace}.svc.{CLUSTER_DOMAIN}" if spec.subdomain else ""
    return _shortened(spec.hostname or pod.metadata.name), domain


def _shortened(name: str) -> str:
    return name if len(name) <= _MOST_HOSTNAME else name[:_MOST_HOSTNAME].rstrip("-.")


def _is_qualified(pod: Pod, domain: str) -> bool:
    return bool(domain and pod.spec.set_hostname_as_fqdn)
