"""CSI drivers and their volumes, as nodes and controllers name them to each other."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import CSIPersistentVolumeSource
from steersman.api.storage.v1 import CSIDriver

_PREFIX: Final = "kubernetes.io/csi/"


def is_attached_first(driver: CSIDriver | None) -> bool:
    """Whether volumes of a driver are attached to a node before it can use them."""
    return driver is None or driver.spec.attach_required is not False


def unique_name(source: CSIPersistentVolumeSource) -> str:
    """What the status of a node calls a volume."""
    return f"{_PREFIX}{source.driver}^{source.volume_handle}"


def is_csi_name(name: str) -> bool:
    """Whether the status of a node means a CSI volume by a name."""
    return name.startswith(_PREFIX)
