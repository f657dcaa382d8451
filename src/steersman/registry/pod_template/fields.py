"""Removal of pod fields whose feature gates are off, unless the old object has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers


def drop_disabled_template_fields(new: core.PodTemplateSpec, old: core.PodTemplateSpec | None) -> None:
    """Drop the disabled fields of a pod template before validation."""
    drop_disabled_fields(new.spec, old.spec if old is not None else None)


def drop_disabled_fields(new: core.PodSpec, old: core.PodSpec | None) -> None:
    """Drop the fields of ClusterTrustBundleProjection, PodCertificateRequest, GenericWorkload and ContainerStopSignals."""
    for source in _projections(new) if new.volumes else ():
        if source.cluster_trust_bundle is not None and not _projects(old, "cluster_trust_bundle"):
            source.cluster_trust_bundle = None
        if source.pod_certificate is not None and not _projects(old, "pod_certificate"):
            source.pod_certificate = None
    if new.scheduling_group is not None and (old is None or old.scheduling_group is None):
        new.scheduling_group = None
    for container in all_containers(new):
        lifecycle = container.lifecycle
        if lifecycle is not None and lifecycle.stop_signal is not None and not _has_stop_signal(old):
            lifecycle.stop_signal = None
            if lifecycle.post_start is None and lifecycle.pre_stop is None:
                container.lifecycle = None


def drop_disabled_status_fields(new: core.PodStatus, old: core.PodStatus) -> None:
    """Drop the fields of ImageVolumeWithDigest and the statuses of node-allocatable claims."""
    if not any(mount.volume_status is not None for mount in _volume_mounts(old)):
        for mount in _volume_mounts(new):
            mount.volume_status = None
    if not old.node_allocatable_resource_claim_statuses:
        new.node_allocatable_resource_claim_statuses = []


def _projections(spec: core.PodSpec) -> Iterator[core.VolumeProjection]:
    for volume in spec.volumes:
        if volume.projected is not None:
            yield from volume.projected.sources or ()


def _projects(spec: core.PodSpec | None, source: str) -> bool:
    return spec is not None and any(getattr(each, source) is not None for each in _projections(spec))


def _has_stop_signal(spec: core.PodSpec | None) -> bool:
    containers: Iterable[AnyContainer] = all_containers(spec) if spec is not None else ()
    return any(c.lifecycle is not None and c.lifecycle.stop_signal is not None for c in containers)


def _volume_mounts(status: core.PodStatus) -> Iterator[core.VolumeMountStatus]:
    for statuses in (status.container_statuses, status.init_container_statuses, status.ephemeral_container_statuses):
        for container in statuses:
            yield from container.volume_mounts
