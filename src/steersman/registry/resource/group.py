"""resource.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, OnRequest, Version
from steersman.registry.resource.deviceclasses import DEVICE_CLASSES
from steersman.registry.resource.resourceclaims import RESOURCE_CLAIMS
from steersman.registry.resource.resourceclaimtemplates import RESOURCE_CLAIM_TEMPLATES
from steersman.registry.resource.resourceslices import RESOURCE_SLICES


def _on_request() -> OnRequest:
    from steersman.registry.resource.devicetaintrules import DEVICE_TAINT_RULES
    from steersman.registry.resource.older_versions import OLDER_VERSIONS
    from steersman.registry.resource.resourcepoolstatusrequests import RESOURCE_POOL_STATUS_REQUESTS

    return OnRequest(
        older_versions=OLDER_VERSIONS,
        resources=(
            DEVICE_TAINT_RULES,
            RESOURCE_POOL_STATUS_REQUESTS,
        ),
    )


RESOURCE: Final = APIGroup(
    name="resource.k8s.io",
    priority=16200,
    versions=(Version("v1", 21), Version("v1beta2"), Version("v1beta1", 9), Version("v1alpha3", 1)),
    resources=(
        DEVICE_CLASSES,
        RESOURCE_CLAIMS,
        RESOURCE_CLAIM_TEMPLATES,
        RESOURCE_SLICES,
    ),
    on_request=_on_request,
)
