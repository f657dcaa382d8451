"""Defaults of the spec of a PersistentVolume, in a volume or inline in a VolumeAttachment."""

from __future__ import annotations

from steersman.api.core.v1 import PersistentVolumeSpec
from steersman.machinery.built_in.pod_resources import round_up_to_milli
from steersman.registry.pod_template.volume_defaults import set_source_defaults


def set_persistent_source_defaults(spec: PersistentVolumeSpec) -> None:
    """Set the defaults of a volume's source."""
    if spec.host_path is not None and spec.host_path.type is None:
        spec.host_path.type = ""
    set_source_defaults(spec)
    round_up_to_milli(spec.capacity)
