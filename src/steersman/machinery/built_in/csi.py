"""CSI drivers and the names of their volumes in the statuses of nodes."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import CSIPersistentVolumeSource
from steersman.api.storage.v1 import CSIDriver

_PREFIX: Final = "kubernetes.io/csi/"


def is_attached_first(driver: CSIDriver | None) -> bool:
    """Return True if a node can only use volumes of a driver after they are attached to the node."""
    return driver is None or driver.spec.attach_required is not False


def unique_name(source: CSIPersistentVolumeSource) -> str:
    """Return the name of a volume in the status of a node."""
    return f"{_PREFIX}{source.driver}^{source.volume_handle}"


def is_csi_name(name: str) -> bool:
    """Return True if a name in the status of a node is that of a CSI volume."""
    return name.startswith(_PREFIX)
