"""NetworkPolicies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.networking.networkpolicies import NETWORK_POLICIES

GROUP, PLURAL = "networking.k8s.io", "networkpolicies"


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"podSelector": {}, **spec}}


async def test_types_follow_from_the_rules_and_ports_are_tcp(cluster: Callable[..., Any]) -> None:
    c = await cluster(NETWORK_POLICIES)
    made = await c.create(PLURAL, policy(egress=[{"ports": [{"port": 53}]}]), group=GROUP)
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["egress"] == [{"ports": [{"port": 53, "protocol": "TCP"}]}]


@pytest.mark.parametrize(
    ("rule", "faults"),
    [
        ({"from": [{}]}, ["spec.ingress[0].from[0]: Required value: must specify a peer"]),
        (
            {"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]},
            ["spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"],
        ),
        (
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "10.0.0.0/8", "10.1.0.0/16"]}}]},
            [
                'spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "11.0.0.0/16": '
                "must be a strict subset of `cidr`",
                'spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "10.0.0.0/8": '
                "must be a strict subset of `cidr`",
            ],
        ),
        (
            {"ports": [{"port": 90, "endPort": 80}, {"endPort": 1}]},
            [
                "spec.ingress[0].ports[0].endPort: Invalid value: 90: must be greater than or equal to `port`",
                "spec.ingress[0].ports[1].endPort: Invalid value: 1: may not be specified when `port` is not specified",
            ],
        ),
    ],
)
async def test_a_rule_is_refused_in_the_words_of_the_reference(
    cluster: Callable[..., Any], rule: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(NETWORK_POLICIES)
    assert await c.faults(c.create(PLURAL, policy(ingress=[rule]), group=GROUP)) == faults
