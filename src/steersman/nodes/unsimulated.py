"""Fields of pods that are accepted and have no effect on simulated nodes; an event of the pod names them.

Fields that concern only a kernel and running programs (privileges, profiles, mount flags) are not among them, as no
program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from steersman.api.core.v1 import Pod, PodSpec, VolumeProjection
from steersman.machinery.built_in.pod_resources import all_containers

REASON: Final = "NotSimulated"
_EMPTY_VOLUMES: Final = (
    ("awsElasticBlockStore", "aws_elastic_block_store"),
    ("azureDisk", "azure_disk"),
    ("azureFile", "azure_file"),
    ("cephfs", "cephfs"),
    ("cinder", "cinder"),
    ("csi", "csi"),
    ("fc", "fc"),
    ("flexVolume", "flex_volume"),
    ("flocker", "flocker"),
    ("gcePersistentDisk", "gce_persistent_disk"),
    ("gitRepo", "git_repo"),
    ("glusterfs", "glusterfs"),
    ("image", "image"),
    ("iscsi", "iscsi"),
    ("photonPersistentDisk", "photon_persistent_disk"),
    ("portworxVolume", "portworx_volume"),
    ("quobyte", "quobyte"),
    ("rbd", "rbd"),
    ("scaleIO", "scale_io"),
    ("storageos", "storageos"),
    ("vsphereVolume", "vsphere_volume"),
)
"""Volume sources that are simulated as empty folders: JSON name and attribute."""
_OF_SPEC: Final[tuple[tuple[str, Callable[[PodSpec], object]], ...]] = (
    ("hostIPC", lambda spec: spec.host_ipc),
    ("hostPID", lambda spec: spec.host_pid),
    ("runtimeClassName", lambda spec: spec.runtime_class_name),
    ("securityContext.windowsOptions", lambda spec: spec.security_context and spec.security_context.windows_options),
)
_OF_SOURCES: Final[tuple[tuple[str, Callable[[VolumeProjection], object]], ...]] = (
    ("clusterTrustBundle", lambda source: source.cluster_trust_bundle),
    ("podCertificate", lambda source: source.pod_certificate),
)


def fields_without_effect(pod: Pod) -> list[str]:
    """Return the paths of the pod's fields that have no effect, each once."""
    return list(dict.fromkeys(_fields(pod.spec)))


def event_message(fields: list[str]) -> str:
    """Return the event message for fields without effect."""
    return f"no effect on a simulated node: {', '.join(f'spec.{each}' for each in fields)}"


def all_fields() -> list[str]:
    """Return the paths of all fields that have no effect."""
    return [
        *(name for name, _ in _OF_SPEC),
        *(f"volumes[].{name}" for name, _ in _EMPTY_VOLUMES),
        *(f"volumes[].projected.sources[].{name}" for name, _ in _OF_SOURCES),
        "containers[].volumeDevices",
        "containers[].securityContext.windowsOptions",
    ]


def _fields(spec: PodSpec) -> Iterator[str]:
    yield from (name for name, value in _OF_SPEC if value(spec))
    for volume in spec.volumes:
        yield from (f"volumes[].{name}" for name, attribute in _EMPTY_VOLUMES if getattr(volume, attribute) is not None)
        for source in (volume.projected.sources or ()) if volume.projected is not None else ():
            for name, value in _OF_SOURCES:
                if value(source) is not None:
                    yield f"volumes[].projected.sources[].{name}"
    for container in all_containers(spec):
        if container.volume_devices:
            yield "containers[].volumeDevices"
        if container.security_context is not None and container.security_context.windows_options is not None:
            yield "containers[].securityContext.windowsOptions"
