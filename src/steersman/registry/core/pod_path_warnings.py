"""Files of one volume that are in each other's way: the same path twice, or one below the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steersman.api.core import v1 as core
from steersman.machinery.field import quote


class _File(NamedTuple):
    """A file of a volume. `source` names what it comes from, "" where that is clear."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def overlapping_path_warnings(volumes: list[core.Volume]) -> Iterator[str]:
    """Warnings about all volumes of a pod."""
    for volume in volumes:
        if volume.config_map is not None:
            of = f"ConfigMap {quote(volume.config_map.name)}"
            yield from _warnings(volume.name, of, (_File(item.path) for item in volume.config_map.items))
        if volume.secret is not None:
            of = f"Secret {quote(volume.secret.secret_name)}"
            yield from _warnings(volume.name, of, (_File(item.path) for item in volume.secret.items))
        if volume.downward_api is not None:
            yield from _warnings(volume.name, "DownwardAPI", (_File(item.path) for item in volume.downward_api.items))
        if volume.projected is not None:
            files: list[_File] = []
            for source in volume.projected.sources or ():
                if source == core.VolumeProjection():
                    yield f"volume {quote(volume.name)} (Projected) has no sources provided"
                yield from _warnings(volume.name, "Projected", _projected(source), files)


def _projected(source: core.VolumeProjection) -> Iterator[_File]:
    if source.config_map is not None and source.config_map.items:
        for item in source.config_map.items:
            yield _File(item.path, f"ConfigMap {quote(source.config_map.name)}")
    elif source.secret is not None and source.secret.items:
        for item in source.secret.items:
            yield _File(item.path, f"Secret {quote(source.secret.name)}")
    elif source.downward_api is not None and source.downward_api.items:
        for file in source.downward_api.items:
            yield _File(file.path, "DownwardAPI")
    elif source.service_account_token is not None:
        yield _File(source.service_account_token.path, "ServiceAccountToken")


def _warnings(volume: str, kind: str, files: Iterable[_File], before: list[_File] | None = None) -> Iterator[str]:
    """Warnings about `files`, each against those before it; `before` are those of earlier sources, to be added to."""
    earlier = [] if before is None else before
    for file in files:
        file = file._replace(path=file.path.rstrip("/"))
        for other in earlier:
            if _overlap(file.path, other.path):
                yield f"volume {quote(volume)} ({kind}): overlapping paths: {file} with {other}"
        earlier.append(file)


def _overlap(one: str, other: str) -> bool:
    if not one or not other:
        return False
    return f"{other}/".startswith(f"{one}/") or f"{one}/".startswith(f"{other}/")
