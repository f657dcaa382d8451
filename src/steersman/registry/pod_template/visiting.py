"""Iteration over the containers of a pod with their field paths."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.field import Path


def containers_with_paths(spec: core.PodSpec, path: Path) -> Iterator[tuple[AnyContainer, Path]]:
    """Yield init containers, containers and ephemeral containers with their paths; `path` is that of the spec."""
    for index, container in enumerate(spec.init_containers):
        yield container, (path / "initContainers")[index]
    for index, container in enumerate(spec.containers or ()):
        yield container, (path / "containers")[index]
    for index, ephemeral in enumerate(spec.ephemeral_containers):
        yield ephemeral, (path / "ephemeralContainers")[index]
