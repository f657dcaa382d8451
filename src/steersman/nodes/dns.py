"""DNS configuration of a pod: name servers, search domains and options of its /etc/resolv.conf.

Follows pkg/kubelet/network/dns (GetPodDNS). Nodes have one name server and no search domain.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from steersman.api.core.v1 import Pod, PodDNSConfig
from steersman.nodes.naming import CLUSTER_DOMAIN

CLUSTER_DNS: Final = "10.96.0.10"
_OF_NODES: Final = "172.16.0.1"
_MOST_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_MOST_SEARCH_CHARACTERS: Final = 2048
_MOST_DOMAIN: Final = 253
REASON: Final = "DNSConfigForming"


class Resolving(NamedTuple):
    """Content of a resolv.conf, and warnings about what was left out of it."""

    servers: list[str]
    searches: list[str]
    options: list[str]
    warnings: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Text of resolv.conf."""
        search = f"search {' '.join(self.searches)}\n" if self.searches else ""
        servers = "".join(f"nameserver {each}\n" for each in self.servers)
        return search + servers + (f"options {' '.join(self.options)}\n" if self.options else "")


def resolving_of(pod: Pod) -> Resolving:
    """Return the DNS configuration of a pod."""
    resolving = _by_policy(pod)
    if pod.spec.dns_config is not None:
        resolving = _with_config(resolving, pod.spec.dns_config)
    warnings = []
    servers = resolving.servers[:_MOST_SERVERS]
    if len(servers) < len(resolving.servers):
        warnings.append(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
            + " ".join(servers)
        )
    searches = _within_limits(resolving.searches)
    if len(searches) < len(resolving.searches):
        warnings.append(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
            + " ".join(searches)
        )
    return Resolving(servers, searches, resolving.options, tuple(warnings))


def _by_policy(pod: Pod) -> Resolving:
    policy = pod.spec.dns_policy or "ClusterFirst"
    if policy == "None":
        return Resolving([], [], [])
    if policy == "Default" or (policy == "ClusterFirst" and pod.spec.host_network):
        return Resolving([_OF_NODES], [], [])
    searches = [f"{pod.metadata.namespace}.svc.{CLUSTER_DOMAIN}", f"svc.{CLUSTER_DOMAIN}", CLUSTER_DOMAIN]
    return Resolving([CLUSTER_DNS], searches, ["ndots:5"])


def _with_config(base: Resolving, config: PodDNSConfig) -> Resolving:
    options = dict(each.partition(":")[::2] for each in base.options)
    options.update((each.name, each.value or "") for each in config.options)
    return Resolving(
        list(dict.fromkeys((*base.servers, *config.nameservers))),
        list(dict.fromkeys((*base.searches, *config.searches))),
        [f"{name}:{value}" if value else name for name, value in options.items()],
    )


def _within_limits(searches: list[str]) -> list[str]:
    fitting: list[str] = []
    length = -1
    for each in [each for each in searches[:_MOST_SEARCHES] if len(each) <= _MOST_DOMAIN]:
        length += len(each) + 1
        if length > _MOST_SEARCH_CHARACTERS:
            break
        fitting.append(each)
    return fitting
