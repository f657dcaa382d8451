"""storage.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, OnRequest, Version
from steersman.registry.storage.csidrivers import CSI_DRIVERS
from steersman.registry.storage.csinodes import CSI_NODES
from steersman.registry.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from steersman.registry.storage.storageclasses import STORAGE_CLASSES
from steersman.registry.storage.volumeattachments import VOLUME_ATTACHMENTS
from steersman.registry.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES


def _on_request() -> OnRequest:
    from steersman.registry.storage.older_versions import OLDER_VERSIONS

    return OnRequest(older_versions=OLDER_VERSIONS)


STORAGE: Final = APIGroup(
    name="storage.k8s.io",
    priority=16800,
    versions=(Version("v1"), Version("v1beta1", 9)),
    empty_versions=("v1alpha1",),
    resources=(
        CSI_DRIVERS,
        CSI_NODES,
        CSI_STORAGE_CAPACITIES,
        STORAGE_CLASSES,
        VOLUME_ATTACHMENTS,
        VOLUME_ATTRIBUTES_CLASSES,
    ),
    on_request=_on_request,
)
