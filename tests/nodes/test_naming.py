"""Names of pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import HostAlias, Pod, PodIP, PodSpec, PodStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.naming import hostname_of, hosts_file, name_error


def pod(name: str = "p", **spec: Any) -> Pod:
    status = PodStatus(host_ip="172.16.0.2", pod_ip="10.0.0.1", pod_ips=[PodIP(ip="10.0.0.1")])
    return Pod(metadata=ObjectMeta(name=name, namespace="n"), spec=PodSpec(node_name="node-0", **spec), status=status)


@pytest.mark.parametrize(
    ("it", "name"),
    [
        (pod(), "p"),
        (pod(hostname="h"), "h"),
        (pod("p" * 62 + "-x"), "p" * 62),
        (pod(host_network=True), "node-0"),
        (pod(hostname="h", hostname_override="db.example"), "db.example"),
        (pod(hostname="h", subdomain="s"), "h"),
        (pod(hostname="h", subdomain="s", set_hostname_as_fqdn=True), "h.s.n.svc.cluster.local"),
        (pod(set_hostname_as_fqdn=True), "p"),
        (pod(hostname_override="o", subdomain="s", set_hostname_as_fqdn=True), "o"),
    ],
)
def test_hostnames(it: Pod, name: str) -> None:
    assert (hostname_of(it), name_error(it)) == (name, "")


def test_a_full_name_may_be_too_long() -> None:
    it = pod("p" * 50, subdomain="s", set_hostname_as_fqdn=True)
    assert name_error(it) == (
        "failed to construct FQDN from pod hostname and cluster domain, FQDN "
        f"{'p' * 50}.s.n.svc.cluster.local is too long (64 characters is the max, 72 characters requested)"
    )
    assert name_error(pod("p" * 50, subdomain="s")) == ""


def test_a_hosts_file_has_the_pod_with_its_domain_and_its_aliases() -> None:
    aliases = [HostAlias(ip="192.0.2.1", hostnames=["a", "b"])]
    lines = hosts_file(pod(subdomain="s", host_aliases=aliases)).splitlines()
    assert lines[0] == "# Kubernetes-managed hosts file."
    assert lines[7:] == [
        "10.0.0.1\tp.s.n.svc.cluster.local\tp",
        "",
        "# Entries added by HostAliases.",
        "192.0.2.1\ta\tb",
    ]
    assert hosts_file(pod(hostname_override="o", subdomain="s")).splitlines()[7:] == ["10.0.0.1\to"]
    lines = hosts_file(pod(host_network=True)).splitlines()
    assert lines[0] == "# Kubernetes-managed hosts file (host network)."
    assert lines[-1] == "172.16.0.2\tnode-0"
