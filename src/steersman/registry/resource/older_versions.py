"""resource.k8s.io/v1beta2 and v1beta1 of kinds that are stored as v1; off by default.

v1beta2 has the types and defaults of v1; for v1beta1 see `machinery.conversion.resource`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from steersman.api.resource import v1, v1beta1, v1beta2
from steersman.machinery.conversion.resource import CONVERSIONS
from steersman.machinery.values import times
from steersman.registry.older_version import deprecated, older_version
from steersman.registry.resource import resourceclaims, resourceclaimtemplates, resourceslices
from steersman.registry.resource.defaults import set_toleration_defaults
from steersman.rest.resource import OtherVersion

Default = Callable[[Any], None]


def set_v1beta1_claim_defaults(claim: v1beta1.ResourceClaim) -> None:
    """Set the defaults of a claim: one device for each request that names a class."""
    _set_spec_defaults(claim.spec)
    if claim.status.allocation is not None:
        for result in claim.status.allocation.devices.results:
            set_toleration_defaults(result.tolerations)


def set_v1beta1_template_defaults(template: v1beta1.ResourceClaimTemplate) -> None:
    """Set the defaults of a template, which are those of a claim."""
    _set_spec_defaults(template.spec.spec)


def _set_spec_defaults(spec: v1beta1.ResourceClaimSpec) -> None:
    for request in spec.devices.requests or ():
        if request.device_class_name:
            _set_count(request)
        set_toleration_defaults(request.tolerations)
        for alternative in request.first_available:
            _set_count(alternative)
            set_toleration_defaults(alternative.tolerations)


def _set_count(request: v1beta1.DeviceRequest | v1beta1.DeviceSubRequest) -> None:
    request.allocation_mode = request.allocation_mode or "ExactCount"
    if request.allocation_mode == "ExactCount":
        request.count = request.count or 1


def set_v1beta1_slice_defaults(resource_slice: v1beta1.ResourceSlice) -> None:
    """Set the defaults of v1 in `basic`."""
    resourceslices.set_list_defaults(resource_slice.spec)
    for device in resource_slice.spec.devices or ():
        if device.basic is None:
            continue
        for mapping in device.basic.node_allocatable_resource_mappings.values():
            if mapping.allocation_multiplier is None:
                mapping.allocation_multiplier = "1"
        for taint in device.basic.taints:
            if taint.time_added is None:
                taint.time_added = times.now()


def _versions(name: str, v1beta2_default: Default | None, v1beta1_default: Default | None) -> tuple[OtherVersion, ...]:
    hub: type[msgspec.Struct] = getattr(v1, name)
    newer: type[msgspec.Struct] = getattr(v1beta2, name)
    older: type[msgspec.Struct] = getattr(v1beta1, name)
    return (
        older_version(hub, newer, deprecated(newer, "1.36", "1.39"), default=v1beta2_default, conversions=CONVERSIONS),
        older_version(hub, older, deprecated(older, "1.35", "1.38"), default=v1beta1_default, conversions=CONVERSIONS),
    )


OLDER_VERSIONS: Final = {
    "deviceclasses": _versions("DeviceClass", None, None),
    "resourceclaims": _versions("ResourceClaim", resourceclaims.set_defaults, set_v1beta1_claim_defaults),
    "resourceclaimtemplates": _versions(
        "ResourceClaimTemplate", resourceclaimtemplates.set_defaults, set_v1beta1_template_defaults
    ),
    "resourceslices": _versions("ResourceSlice", resourceslices.set_defaults, set_v1beta1_slice_defaults),
}
"""The older versions by resource."""
