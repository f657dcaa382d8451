"""internal.apiserver.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, OnRequest, Version


def _on_request() -> OnRequest:
    from steersman.registry.apiserverinternal.storageversions import STORAGE_VERSIONS

    return OnRequest(resources=(STORAGE_VERSIONS,))


API_SERVER_INTERNAL: Final = APIGroup(
    name="internal.apiserver.k8s.io",
    priority=16000,
    versions=(Version("v1alpha1", 9),),
    on_request=_on_request,
)
