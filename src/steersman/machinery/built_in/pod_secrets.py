"""References from pods to secrets (pkg/api/v1/pod VisitPodSecretNames)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core

_WITH_SECRET_REF: Final = ("cephfs", "cinder", "flex_volume", "rbd", "scale_io", "iscsi", "storageos")


def secret_names(spec: core.PodSpec) -> Iterator[str]:
    """Yield the names of all secrets to which a pod refers."""
    for reference in spec.image_pull_secrets:
        yield reference.name
    for container in (*spec.init_containers, *(spec.containers or ()), *spec.ephemeral_containers):
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.secret_key_ref is not None:
                yield variable.value_from.secret_key_ref.name
        for source in container.env_from:
            if source.secret_ref is not None:
                yield source.secret_ref.name
    for volume in spec.volumes:
        yield from _volume_secrets(volume)


def _volume_secrets(volume: core.Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield volume.secret.secret_name
    elif volume.azure_file is not None:
        yield volume.azure_file.secret_name
    elif volume.projected is not None:
        for source in volume.projected.sources or ():
            if source.secret is not None:
                yield source.secret.name
    elif volume.csi is not None:
        if volume.csi.node_publish_secret_ref is not None:
            yield volume.csi.node_publish_secret_ref.name
    else:
        for attribute in _WITH_SECRET_REF:
            driver = getattr(volume, attribute)
            if driver is not None and driver.secret_ref is not None:
                yield driver.secret_ref.name
