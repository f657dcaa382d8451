"""storage.k8s.io/v1beta1, off by default."""

from __future__ import annotations

from typing import Final

from steersman.api.storage import v1, v1beta1
from steersman.registry.older_version import deprecated, older_version

_WARNING: Final = deprecated(v1beta1.VolumeAttributesClass, "1.34", "1.37", "storage.k8s.io/v1 VolumeAttributesClass")

OLDER_VERSIONS: Final = {
    "volumeattributesclasses": (older_version(v1.VolumeAttributesClass, v1beta1.VolumeAttributesClass, _WARNING),),
}
"""The older versions by resource."""
