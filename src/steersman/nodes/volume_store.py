"""Files that simulated containers write into volumes of pods, of nodes and of persistent volumes.

The files are kept in memory as long as their volume lives, bounded for each volume and for all together.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Final, NamedTuple

from steersman.nodes.shell.effects import NoSpace, bytes_of_file

MOST_IN_VOLUME: Final = 1 << 20
"""Bytes of the files of one volume, with their names and the overhead of each."""
MOST_IN_ALL: Final = 64 << 20
"""Bytes of the files of all volumes, with their names and the overhead of each."""


class VolumeKey(NamedTuple):
    """Key of a stored volume. `owner` is the UID of a pod or persistent volume, or the name of a node or a server."""

    kind: str
    owner: str
    name: str = ""


class VolumeFiles(MutableMapping[str, bytes]):
    """Files of one volume, by their path in it. Setting raises NoSpace if the volume or the store is full."""

    def __init__(self, store: VolumeStore, key: VolumeKey) -> None:
        self._store = store
        self._files: dict[str, bytes] = {}
        self.key: Final = key
        self.used_bytes = 0
        """Bytes of the files, with their names and the overhead of each."""
        self.size = 0
        """Bytes of the files alone."""
        self.is_gone = False
        """True once the volume is deleted, after which nothing can be written into it."""

    def __getitem__(self, path: str) -> bytes:
        return self._files[path]

    def __setitem__(self, path: str, data: bytes) -> None:
        more = bytes_of_file(path, data) - bytes_of_file(path, self._files.get(path))
        if self.is_gone or (more > 0 and more > self.free_bytes()):
            raise NoSpace
        self.size += len(data) - len(self._files.get(path, b""))
        self._files[path] = data
        self._count(more)

    def __delitem__(self, path: str) -> None:
        data = self._files.pop(path)
        self.size -= len(data)
        self._count(-bytes_of_file(path, data))

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def free_bytes(self) -> int:
        """Return the bytes that are left for files."""
        return min(MOST_IN_VOLUME - self.used_bytes, self._store.free_bytes())

    def _count(self, more: int) -> None:
        self.used_bytes += more
        self._store.used_bytes += more


class VolumeStore:
    """Stored volumes of all nodes."""

    def __init__(self) -> None:
        self._volumes: dict[VolumeKey, VolumeFiles] = {}
        self.used_bytes = 0

    def files(self, key: VolumeKey) -> VolumeFiles:
        """Return the files of a volume, for reading and writing. An unknown volume is created."""
        files = self._volumes.get(key)
        if files is None:
            files = self._volumes[key] = VolumeFiles(self, key)
        return files

    def has(self, key: VolumeKey) -> bool:
        """Return True if the volume exists."""
        return key in self._volumes

    def free_bytes(self) -> int:
        """Return the bytes that are left for files of all volumes."""
        return MOST_IN_ALL - self.used_bytes

    def drop(self, key: VolumeKey) -> None:
        """Delete a volume with its files."""
        files = self._volumes.pop(key, None)
        if files is not None:
            files.clear()
            files.is_gone = True

    def __len__(self) -> int:
        return len(self._volumes)
