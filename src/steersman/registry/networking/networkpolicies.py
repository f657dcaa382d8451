"""NetworkPolicies: allowed traffic from and to pods."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.networking.v1 import NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.columns import label_selector_text
from steersman.registry.networking.network_policy_validation import network_policy_warnings, validate_network_policy
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(policy: NetworkPolicy) -> None:
    """Set the defaults: TCP; policy type Ingress, and Egress if there are egress rules."""
    spec = policy.spec
    if not spec.policy_types:
        spec.policy_types = ["Ingress", "Egress"] if spec.egress else ["Ingress"]
    rules: list[NetworkPolicyIngressRule | NetworkPolicyEgressRule] = [*spec.ingress, *spec.egress]
    for rule in rules:
        for port in rule.ports:
            if port.protocol is None:
                port.protocol = "TCP"


class NetworkPolicyStrategy(Strategy[NetworkPolicy]):
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, policy: NetworkPolicy) -> Iterator[FieldError]:
        return validate_network_policy(policy.spec, None)

    def warnings(self, ctx: Context, policy: NetworkPolicy) -> Iterator[str]:
        return network_policy_warnings(policy.spec)

    def validate_update(self, ctx: Context, new: NetworkPolicy, old: NetworkPolicy) -> Iterator[FieldError]:
        return validate_network_policy(new.spec, old.spec)


NETWORK_POLICIES = Resource(
    kind=built_in(NetworkPolicy, default=set_defaults),
    plural="networkpolicies",
    short_names=("netpol",),
    strategy=NetworkPolicyStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(Column("Pod-Selector", lambda p: label_selector_text(p.spec.pod_selector)), AGE),
    storage_version_hash="YpfwF18m1G8=",
)
