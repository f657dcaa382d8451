"""coordination.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, OnRequest, Version
from steersman.registry.coordination.leases import LEASES


def _on_request() -> OnRequest:
    from steersman.registry.coordination.leasecandidates import LEASE_CANDIDATES

    return OnRequest(resources=(LEASE_CANDIDATES,))


COORDINATION: Final = APIGroup(
    name="coordination.k8s.io",
    priority=16500,
    versions=(Version("v1"), Version("v1beta1", 13), Version("v1alpha2", 12)),
    resources=(LEASES,),
    on_request=_on_request,
)
