"""Defaults of requests for devices (resource.k8s.io v1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from steersman.api.resource.v1 import DeviceSubRequest, ExactDeviceRequest, ResourceClaimSpec


class Toleration(Protocol):
    """A DeviceToleration of any version."""

    operator: str


def set_claim_defaults(spec: ResourceClaimSpec) -> None:
    """Set the defaults of a claim: one device for each request."""
    for request in spec.devices.requests or ():
        if request.exactly is not None:
            _set_request_defaults(request.exactly)
        for alternative in request.first_available:
            _set_request_defaults(alternative)


def _set_request_defaults(request: ExactDeviceRequest | DeviceSubRequest) -> None:
    request.allocation_mode = request.allocation_mode or "ExactCount"
    if request.allocation_mode == "ExactCount":
        request.count = request.count or 1
    set_toleration_defaults(request.tolerations)


def set_toleration_defaults(tolerations: Iterable[Toleration]) -> None:
    """Default the operator to Equal."""
    for toleration in tolerations:
        toleration.operator = toleration.operator or "Equal"
