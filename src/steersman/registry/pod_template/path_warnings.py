"""Warnings about conflicting files of one volume: equal paths, or one path below the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import quote


class _File(NamedTuple):
    """A file of a volume; its path has no trailing slashes.

    `source` is the type of its source, "" if the volume has only one, and `name` the name of the source.
    """

    path: str
    source: str = ""
    name: str | None = None

    def __str__(self) -> str:
        source = self.source if self.name is None else f"{self.source} {quote(self.name)}"
        return f"{quote(self.path)} ({source})" if source else quote(self.path)


_Item = core.KeyToPath | core.DownwardAPIVolumeFile


def overlapping_path_warnings(volumes: list[core.Volume]) -> Iterator[str]:
    """Yield warnings about all volumes of a pod."""
    for volume in volumes:
        if volume.config_map is not None and volume.config_map.items:
            kind = f"ConfigMap {quote(volume.config_map.name)}"
            yield from _warnings(volume.name, kind, volume.config_map.items)
        if volume.secret is not None and volume.secret.items:
            kind = f"Secret {quote(volume.secret.secret_name)}"
            yield from _warnings(volume.name, kind, volume.secret.items)
        if volume.downward_api is not None and volume.downward_api.items:
            yield from _warnings(volume.name, "DownwardAPI", volume.downward_api.items)
        if volume.projected is not None:
            yield from _projection_warnings(volume.name, volume.projected.sources or ())


def _warnings(volume: str, kind: str, items: Sequence[_Item]) -> Iterator[str]:
    """Yield warnings about the files of a volume with one source."""
    files = _files(items)
    return _against_earlier(volume, kind, files, Overlaps(file.path for file in files))


def _projection_warnings(volume: str, sources: Sequence[core.VolumeProjection]) -> Iterator[str]:
    files = [_projected(source) for source in sources]
    paths = [file.path for each in files for file in each]
    overlaps = None if are_apart(paths) else Overlaps(paths)
    for source, own in zip(sources, files, strict=True):
        if source == _NO_SOURCE:
            yield f"volume {quote(volume)} (Projected) has no sources provided"
        if overlaps is not None:
            yield from _against_earlier(volume, "Projected", own, overlaps)


_NO_SOURCE: Final = core.VolumeProjection()


def _projected(source: core.VolumeProjection) -> list[_File]:
    if source.config_map is not None and source.config_map.items:
        return _files(source.config_map.items, "ConfigMap", source.config_map.name)
    if source.secret is not None and source.secret.items:
        return _files(source.secret.items, "Secret", source.secret.name)
    if source.downward_api is not None and source.downward_api.items:
        return _files(source.downward_api.items, "DownwardAPI")
    if source.service_account_token is not None:
        return [_File(source.service_account_token.path.rstrip("/"), "ServiceAccountToken")]
    return []


def _files(items: Iterable[_Item], source: str = "", name: str | None = None) -> list[_File]:
    return [_File(item.path.rstrip("/"), source, name) for item in items]


def are_apart(paths: Collection[str]) -> bool:
    """Return True if the paths are different names in one directory, which is nearly always so."""
    return len(set(paths)) == len(paths) and "/" not in "".join(paths)


def _against_earlier(volume: str, kind: str, files: list[_File], overlaps: Overlaps) -> Iterator[str]:
    """Yield warnings about `files` against all earlier files, in the order of the earlier files; each pair once."""
    for file in files:
        for other in overlaps.with_earlier(file):
            yield f"volume {quote(volume)} ({kind}): overlapping paths: {file} with {other}"


class Overlaps:
    """Finds the earlier files that conflict with a file, at a cost proportional to the result.

    A pair is reported once, as the warning for a repeated file would have the same text.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        """Index the paths of all files that will be looked up; they have no trailing slashes."""
        self.above = _nearest_above(paths)
        self._at: dict[str, list[tuple[int, _File]]] = {}
        """Files by path, each with its number in order of arrival."""
        self._below: dict[str, list[tuple[int, _File]]] = {}
        """Files at or below each path."""
        self._compared: dict[_File, int] = {}
        """The number of the last file with which a file has been compared."""
        self._count = 0

    def with_earlier(self, file: _File) -> list[_File]:
        """Return the earlier files that conflict with `file` and were not reported before.

        An empty path conflicts with nothing.
        """
        if not file.path:
            return []
        compared = self._compared.get(file)
        above = list(self._all_above(file.path))
        found = self._since(self._below, file.path, compared or 0)
        for path in above:
            found += self._since(self._at, path, compared or 0)
        if compared is None:
            for index, path in ((self._at, file.path), (self._below, file.path), *((self._below, p) for p in above)):
                index.setdefault(path, []).append((self._count, file))
            self._compared[file] = self._count
            self._count += 1
        else:
            self._compared[file] = self._count
        return [other for _, other in sorted(found)]

    def _all_above(self, path: str) -> Iterator[str]:
        """Yield the paths of other files that are directories above `path`, the nearest first."""
        above = self.above.get(path, "")
        while above:
            yield above
            above = self.above.get(above, "")

    @staticmethod
    def _since(index: dict[str, list[tuple[int, _File]]], path: str, number: int) -> list[tuple[int, _File]]:
        known = index.get(path, [])
        return known[bisect_left(known, (number,)) :]


def _nearest_above(paths: Iterable[str]) -> dict[str, str]:
    """Return the nearest other path above each path that has one.

    In the sort order of `_by_names`, a path directly precedes the paths below it.
    """
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
    """Return a sort key that puts a path directly before the paths below it: the slash sorts before all other
    characters.
    """
    return path.replace("\0", "\0\1").replace("/", "\0\0")
