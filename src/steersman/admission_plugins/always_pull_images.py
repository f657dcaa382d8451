"""AlwaysPullImages: images are pulled at each start, so that only users who may pull an image can run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.errors.field import FieldError, Path, not_supported
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.identity.schema import GroupResource

_PODS: Final = GroupResource("", "pods")
_ALWAYS: Final = "Always"
_SPEC: Final = Path("spec")


class AlwaysPullImages(Plugin):
    """Sets the pull policy of all containers and image volumes to Always."""

    name = "AlwaysPullImages"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    mutates = True
    validates = True

    async def admit(self, attributes: Attributes) -> None:
        if not _brings_images(attributes):
            return
        spec: core.PodSpec = attributes.obj.spec
        for container in all_containers(spec):
            container.image_pull_policy = _ALWAYS
        for volume in spec.volumes:
            if volume.image is not None:
                volume.image.pull_policy = _ALWAYS

    async def validate(self, attributes: Attributes) -> None:
        """Check that every pull policy is still Always. Raises StatusError 500, as upstream, if a later plugin changed
        one.
        """
        if not _brings_images(attributes):
            return
        faults = [str(attributes.forbid(each)) for each in _other_policies(attributes.obj.spec)]
        if faults:
            raise plain_internal(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _brings_images(attributes: Attributes) -> bool:
    """Return True for a create, and for an update with a new image."""
    if attributes.operation == CREATE:
        return True
    old_images = {container.image for container in all_containers(attributes.old.spec)}
    return any(container.image not in old_images for container in all_containers(attributes.obj.spec))


def _other_policies(spec: core.PodSpec) -> Iterator[FieldError]:
    kinds: tuple[tuple[str, Iterable[AnyContainer]], ...] = (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers or ()),
        ("ephemeralContainers", spec.ephemeral_containers),
    )
    for name, containers in kinds:
        for index, container in enumerate(containers):
            if container.image_pull_policy != _ALWAYS:
                path = (_SPEC / name)[index] / "imagePullPolicy"
                yield not_supported(path, container.image_pull_policy, (_ALWAYS,))
    for index, volume in enumerate(spec.volumes):
        if volume.image is not None and volume.image.pull_policy != _ALWAYS:
            path = (_SPEC / "volumes")[index] / "image" / "pullPolicy"
            yield not_supported(path, volume.image.pull_policy, (_ALWAYS,))


ALWAYS_PULL_IMAGES: Final = Declaration(AlwaysPullImages, on_by_default=False)
