"""Initial objects of a cluster with the simulated driver: the CSIDriver and its storage classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import CSIDriver, CSIDriverSpec, StorageClass
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists
from steersman.client.resources import CSI_DRIVERS, STORAGE_CLASSES
from steersman.machinery.built_in.classes import DEFAULT_STORAGE_CLASS
from steersman.machinery.built_in.volumes import WAIT_FOR_FIRST_CONSUMER

DRIVER: Final = "volumes.simulation.steersman.dev"
DEFAULT_CLASS: Final = "standard"
"""Storage class whose volumes are created at once."""
DELAYED_CLASS: Final = "standard-delayed"
"""Storage class whose volumes are created once a pod that uses them is scheduled."""


async def install(client: Client) -> None:
    """Create the objects that do not exist yet. Raises StatusError, Unreachable."""
    for resource, obj in _objects():
        with ignoring(is_already_exists):
            await client.create(resource, obj)


def _objects() -> Iterator[tuple[APIResource[Any], Any]]:
    driver = CSIDriverSpec(attach_required=True, pod_info_on_mount=False, volume_lifecycle_modes=["Persistent"])
    yield CSI_DRIVERS, CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=driver)
    yield STORAGE_CLASSES, _storage_class(DEFAULT_CLASS, "Immediate", {DEFAULT_STORAGE_CLASS[0]: "true"})
    yield STORAGE_CLASSES, _storage_class(DELAYED_CLASS, WAIT_FOR_FIRST_CONSUMER, {})


def _storage_class(name: str, mode: str, annotations: dict[str, str]) -> StorageClass:
    return StorageClass(
        metadata=ObjectMeta(name=name, annotations=annotations),
        provisioner=DRIVER,
        reclaim_policy="Delete",
        allow_volume_expansion=True,
        volume_binding_mode=mode,
    )
