"""Images of pods, with the names under which nodes report them (plugins/imagelocality)."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.api.core import v1 as core


def normalized_image_name(name: str) -> str:
    """Return the name with `:latest` if it has no tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def images_of(spec: core.PodSpec) -> Sequence[str]:
    """Return the images of a pod, one for each container and image volume."""
    names = [each.image for each in (*spec.init_containers, *(spec.containers or ()))]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(normalized_image_name, names))
