"""Defaults of the volumes of a pod."""

from __future__ import annotations

from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import round_up_to_milli
from steersman.registry.pod_template.image import pull_policy_for

DEFAULT_FILE_MODE: Final = 0o644
DEFAULT_TOKEN_EXPIRATION: Final = 3600
"""Seconds."""


def set_volume_defaults(volume: core.Volume) -> None:
    """Set the defaults of a volume's source; a volume without a source becomes an emptyDir."""
    if volume == core.Volume(name=volume.name):
        volume.empty_dir = core.EmptyDirVolumeSource()
        return
    if volume.config_map is not None:
        volume.config_map.default_mode = _mode(volume.config_map.default_mode)
    elif volume.secret is not None:
        volume.secret.default_mode = _mode(volume.secret.default_mode)
    elif volume.projected is not None:
        set_projected_defaults(volume.projected)
    elif volume.downward_api is not None:
        volume.downward_api.default_mode = _mode(volume.downward_api.default_mode)
        _set_field_versions(volume.downward_api.items)
    if volume.host_path is not None and volume.host_path.type is None:
        volume.host_path.type = ""
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        set_claim_spec_defaults(volume.ephemeral.volume_claim_template.spec)
    if volume.image is not None and not volume.image.pull_policy:
        volume.image.pull_policy = pull_policy_for(volume.image.reference)
    set_source_defaults(volume)


def set_projected_defaults(projected: core.ProjectedVolumeSource) -> None:
    """Set the defaults of a projected volume and its sources."""
    projected.default_mode = _mode(projected.default_mode)
    projected.sources = projected.sources or None
    for source in projected.sources or ():
        if source.downward_api is not None:
            _set_field_versions(source.downward_api.items)
        if (token := source.service_account_token) is not None and token.expiration_seconds is None:
            token.expiration_seconds = DEFAULT_TOKEN_EXPIRATION


def set_claim_spec_defaults(spec: core.PersistentVolumeClaimSpec) -> None:
    """Set the defaults of a claim spec, in a claim or a template."""
    if spec.volume_mode is None:
        spec.volume_mode = "Filesystem"
    round_up_to_milli(spec.resources.limits)
    round_up_to_milli(spec.resources.requests)


def _mode(mode: int | None) -> int:
    return DEFAULT_FILE_MODE if mode is None else mode


def _set_field_versions(files: list[core.DownwardAPIVolumeFile]) -> None:
    for file in files:
        if file.field_ref is not None and not file.field_ref.api_version:
            file.field_ref.api_version = "v1"


def set_source_defaults(volume: core.Volume | core.PersistentVolumeSpec) -> None:
    """Set the defaults of sources that are equal for volumes of pods and for PersistentVolumes."""
    if (iscsi := volume.iscsi) is not None:
        iscsi.iscsi_interface = iscsi.iscsi_interface or "default"
    if (rbd := volume.rbd) is not None:
        rbd.pool = rbd.pool or "rbd"
        rbd.user = rbd.user or "admin"
        rbd.keyring = rbd.keyring or "/etc/ceph/keyring"
    if (azure := volume.azure_disk) is not None:
        azure.caching_mode = "ReadWrite" if azure.caching_mode is None else azure.caching_mode
        azure.fs_type = "ext4" if azure.fs_type is None else azure.fs_type
        azure.read_only = False if azure.read_only is None else azure.read_only
        azure.kind = "Shared" if azure.kind is None else azure.kind
    if (scale_io := volume.scale_io) is not None:
        scale_io.storage_mode = scale_io.storage_mode or "ThinProvisioned"
        scale_io.fs_type = scale_io.fs_type or "xfs"
