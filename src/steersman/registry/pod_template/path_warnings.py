"""Files of one volume that are in each other's way: the same path twice, or one below the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import quote


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
            yield from _warnings(volume.name, of, [_File(item.path) for item in volume.config_map.items])
        if volume.secret is not None:
            of = f"Secret {quote(volume.secret.secret_name)}"
            yield from _warnings(volume.name, of, [_File(item.path) for item in volume.secret.items])
        if volume.downward_api is not None:
            yield from _warnings(volume.name, "DownwardAPI", [_File(item.path) for item in volume.downward_api.items])
        if volume.projected is not None:
            sources = volume.projected.sources or ()
            files = [[_without_end(file) for file in _projected(source)] for source in sources]
            overlaps = _Overlaps(file.path for each in files for file in each)
            for source, own in zip(sources, files, strict=True):
                if source == _NO_SOURCE:
                    yield f"volume {quote(volume.name)} (Projected) has no sources provided"
                yield from _against_earlier(volume.name, "Projected", own, overlaps)


_NO_SOURCE: Final = core.VolumeProjection()


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


def _without_end(file: _File) -> _File:
    return file._replace(path=file.path.rstrip("/"))


def _warnings(volume: str, kind: str, files: list[_File]) -> Iterator[str]:
    """Warnings about the files of a volume with one source."""
    files = [_without_end(file) for file in files]
    return _against_earlier(volume, kind, files, _Overlaps(file.path for file in files))


def _against_earlier(volume: str, kind: str, files: list[_File], overlaps: _Overlaps) -> Iterator[str]:
    """Warnings about `files`, each against those before it, in the order of those; none twice."""
    for file in files:
        for other in overlaps.with_earlier(file):
            yield f"volume {quote(volume)} ({kind}): overlapping paths: {file} with {other}"


class _Overlaps:
    """Finds which files came before one that are in its way, at the cost of what is found.

    What was told of a file is not told of it again when it comes again: its warning would be the same text.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        """`paths` are those of all files that will come, without slashes at their ends."""
        self._above = _nearest_above(paths)
        self._at: dict[str, list[tuple[int, _File]]] = {}
        """Files by their path, each with its number in the order of coming."""
        self._below: dict[str, list[tuple[int, _File]]] = {}
        """Files at a path or below it."""
        self._told: dict[_File, int] = {}
        """The number up to which a file has been held against others."""
        self._count = 0

    def with_earlier(self, file: _File) -> list[_File]:
        """The files before `file` that are in its way, but for those that were found before. An empty path is in
        nobody's."""
        if not file.path:
            return []
        told = self._told.get(file)
        above = list(self._all_above(file.path))
        found = self._since(self._below, file.path, told or 0)
        for path in above:
            found += self._since(self._at, path, told or 0)
        if told is None:
            for index, path in ((self._at, file.path), (self._below, file.path), *((self._below, p) for p in above)):
                index.setdefault(path, []).append((self._count, file))
            self._told[file] = self._count
            self._count += 1
        else:
            self._told[file] = self._count
        return [other for _, other in sorted(found)]

    def _all_above(self, path: str) -> Iterator[str]:
        """The paths of other files that are directories above `path`, the nearest first."""
        above = self._above.get(path, "")
        while above:
            yield above
            above = self._above.get(above, "")

    @staticmethod
    def _since(index: dict[str, list[tuple[int, _File]]], path: str, number: int) -> list[tuple[int, _File]]:
        known = index.get(path, [])
        return known[bisect_left(known, (number,)) :]


def _nearest_above(paths: Iterable[str]) -> dict[str, str]:
    """For each path that is below others the nearest of those. Sorted by their names, paths follow what they are
    below."""
    above: dict[str, str] = {}
    open_: list[str] = []
    for path in sorted(set(paths), key=_by_names):
        while open_ and not (path.startswith(open_[-1]) and path[len(open_[-1])] == "/"):
            open_.pop()
        if open_:
            above[path] = open_[-1]
        if path:
            open_.append(path)
    return above


def _by_names(path: str) -> str:
    """Sorts a path right before what is below it: the slash comes before any other character."""
    return path.replace("\0", "\0\1").replace("/", "\0\0")
