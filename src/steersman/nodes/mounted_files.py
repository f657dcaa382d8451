"""Files that a container sees: its own, and the files of the volumes that are mounted in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from steersman.nodes.shell.effects import MOST_FILE_BYTES, FileSystems, NoSpace, bytes_of_file
from steersman.nodes.volume_store import VolumeFiles

_MOST_MOUNTS: Final = 64
"""Mounts of a container that are shared; further ones are not."""
_MOST_IN_SIGHT: Final = 16_384
"""Files that are listed at most."""


class Mount(NamedTuple):
    """A volume, or the folder or file `inside` in it, mounted at the absolute path `at`.

    `files` is None for a volume whose files are the container's own.
    """

    at: str
    files: VolumeFiles | None
    inside: str = ""
    name: str = ""
    """Name of the volume."""


class MountedFiles(FileSystems):
    """Files by absolute path. A file below a mount is in its volume, which other containers see, too."""

    def __init__(
        self, own: MutableMapping[str, bytes], mounts: Sequence[Mount], full: Callable[[str], None] | None = None
    ) -> None:
        """`full` is called with the name of a volume that has no space left for a write."""
        self._own = own
        self._full = full
        self._mounts = sorted(mounts[:_MOST_MOUNTS], key=lambda each: len(each.at), reverse=True)
        self._below = tuple(f"{each.at.rstrip('/')}/" for each in self._mounts if each.files is not None)
        self._at = frozenset(each.at for each in self._mounts if each.files is not None)
        self._has_nested = any(
            one is not other and one.at.startswith(f"{other.at.rstrip('/')}/")
            for one in self._mounts
            for other in self._mounts
        )

    def __getitem__(self, path: str) -> bytes:
        files, inside = self._route(path)
        return files[inside]

    def __setitem__(self, path: str, data: bytes) -> None:
        files, inside = self._route(path)
        try:
            files[inside] = data
        except NoSpace:
            self.report_full(path)
            raise

    def __delitem__(self, path: str) -> None:
        files, inside = self._route(path)
        del files[inside]

    def __iter__(self) -> Iterator[str]:
        return islice(self._paths(), _MOST_IN_SIGHT)

    def _paths(self) -> Iterator[str]:
        for path in list(self._own):
            if not (path in self._at or path.startswith(self._below)) or self._route(path)[0] is self._own:
                yield path
        for mount in self._mounts:
            for path, inside in _in_sight(mount):
                if not self._has_nested or self._route(path) == (mount.files, inside):
                    yield path

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def file_count_bound(self) -> int:
        """Upper bound of the number of files."""
        return len(self._own) + sum(len(each.files) for each in self._mounts if each.files is not None)

    def free_bytes(self, path: str) -> int:
        """Return the bytes that are left on the file system of `path`."""
        files, _ = self._route(path)
        if isinstance(files, VolumeFiles):
            return files.free_bytes()
        return MOST_FILE_BYTES - sum(bytes_of_file(each, data) for each, data in self._own.items())

    def report_full(self, path: str) -> None:
        """Report a write to `path` for which no space was left."""
        mount = self._mount_of(path)
        if mount is not None and self._full is not None:
            self._full(mount.name)

    def _route(self, path: str) -> tuple[MutableMapping[str, bytes], str]:
        """Return the files that hold `path`, and its key in them."""
        mount = self._mount_of(path)
        if mount is None or mount.files is None:
            return self._own, path
        rest = path[len(mount.at.rstrip("/")) + 1 :]
        return mount.files, f"{mount.inside}/{rest}" if mount.inside and rest else mount.inside or rest

    def _mount_of(self, path: str) -> Mount | None:
        """Return the innermost mount that contains `path`, or None."""
        for mount in self._mounts:
            at = mount.at.rstrip("/")
            if path == at or path.startswith(f"{at}/"):
                return mount
        return None


def _in_sight(mount: Mount) -> Iterator[tuple[str, str]]:
    """Yield the absolute paths of a mount's files, and their names in the volume."""
    if mount.files is None:
        return
    at, inside = mount.at.rstrip("/"), mount.inside
    for name in list(mount.files):
        if not inside:
            yield f"{at}/{name}", name
        elif name == inside:
            yield at, name
        elif name.startswith(f"{inside}/"):
            yield f"{at}{name[len(inside) :]}", name
