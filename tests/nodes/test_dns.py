"""Name servers of pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import Pod, PodDNSConfig, PodDNSConfigOption, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.dns import resolving_of


def pod(**spec: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", namespace="n"), spec=PodSpec(**spec))


CLUSTER = "search n.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"
NODE = "nameserver 172.16.0.1\n"
CONFIG = PodDNSConfig(
    nameservers=["192.0.2.1", "10.96.0.10"],
    searches=["a.example", "cluster.local"],
    options=[PodDNSConfigOption(name="ndots", value="2"), PodDNSConfigOption(name="edns0")],
)


@pytest.mark.parametrize(
    ("it", "file"),
    [
        (pod(), CLUSTER),
        (pod(dns_policy="ClusterFirst"), CLUSTER),
        (pod(dns_policy="Default"), NODE),
        (pod(dns_policy="ClusterFirst", host_network=True), NODE),
        (pod(dns_policy="ClusterFirstWithHostNet", host_network=True), CLUSTER),
        (pod(dns_policy="None"), ""),
        (
            pod(dns_policy="None", dns_config=CONFIG),
            "search a.example cluster.local\nnameserver 192.0.2.1\nnameserver 10.96.0.10\noptions ndots:2 edns0\n",
        ),
        (
            pod(dns_config=CONFIG),
            "search n.svc.cluster.local svc.cluster.local cluster.local a.example\nnameserver 10.96.0.10\n"
            "nameserver 192.0.2.1\noptions ndots:2 edns0\n",
        ),
    ],
)
def test_policies_and_configurations(it: Pod, file: str) -> None:
    assert (resolving_of(it).file, resolving_of(it).warnings) == (file, ())


def test_values_beyond_the_limits_are_omitted_and_reported() -> None:
    found = resolving_of(pod(dns_config=PodDNSConfig(nameservers=["192.0.2.1", "192.0.2.2", "192.0.2.3"])))
    assert found.servers == ["10.96.0.10", "192.0.2.1", "192.0.2.2"]
    assert found.warnings == (
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        "10.96.0.10 192.0.2.1 192.0.2.2",
    )
    many = resolving_of(pod(dns_policy="None", dns_config=PodDNSConfig(searches=[f"d{each}" for each in range(40)])))
    assert len(many.searches) == 32
    assert many.warnings[0].startswith("Search Line limits were exceeded, some search paths have been omitted, the")
    long = resolving_of(
        pod(dns_policy="None", dns_config=PodDNSConfig(searches=["x" * 250 + str(n) for n in range(9)]))
    )
    assert len(" ".join(long.searches)) == 8 * 252 - 1
    assert resolving_of(pod(dns_policy="None", dns_config=PodDNSConfig(searches=["x" * 254]))).searches == []
