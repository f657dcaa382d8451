"""networking.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, OnRequest, Version
from steersman.registry.networking.ingressclasses import INGRESS_CLASSES
from steersman.registry.networking.ingresses import INGRESSES
from steersman.registry.networking.ipaddresses import IP_ADDRESSES
from steersman.registry.networking.networkpolicies import NETWORK_POLICIES
from steersman.registry.networking.servicecidrs import SERVICE_CIDRS


def _on_request() -> OnRequest:
    from steersman.registry.networking.older_versions import OLDER_VERSIONS

    return OnRequest(older_versions=OLDER_VERSIONS)


NETWORKING: Final = APIGroup(
    name="networking.k8s.io",
    priority=17200,
    versions=(Version("v1"), Version("v1beta1", 9)),
    resources=(
        INGRESS_CLASSES,
        INGRESSES,
        IP_ADDRESSES,
        NETWORK_POLICIES,
        SERVICE_CIDRS,
    ),
    on_request=_on_request,
)
