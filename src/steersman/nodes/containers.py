"""State of running containers beyond their pods' statuses: ends from inside, and written files.

It is in memory only and lost when the process ends, as the files of a real container are lost with the container.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Final

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.client.informer import Key, key_of
from steersman.nodes.container_status import all_statuses
from steersman.nodes.contents import Contents
from steersman.nodes.context import ContainerExit, ContainerRecord
from steersman.nodes.rehearsal import Printed
from steersman.nodes.shell.effects import World, bytes_of_file
from steersman.nodes.usage import Usages

_MOST_WRITTEN: Final = 64 << 20
"""Bytes of written files that are kept for the containers of one namespace."""
_MOST_VOLUME_BYTES: Final = 64 << 20
"""Bytes of variables and of files of volumes that are kept for all containers together."""
_MOST_WITH_FILES: Final = 1000
"""Containers whose files are kept; the least recently used ones beyond that are evicted."""


class ContainerFiles:
    """Files in a container, and the progress of its own command where that changes files."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.view: MutableMapping[str, bytes] | None = None
        """`files` together with the files of shared volumes; None if there are none."""
        self.volume_files: dict[str, bytes] = {}
        """Files of its ConfigMap, Secret and similar volumes, as last read."""
        self.volume_size = 0
        """Bytes of `volume_files` and of the variables in `cached_world` and `rehearsal`."""
        self.modes: dict[str, int] = {}
        """Permission bits that commands have set on files and folders."""
        self.cached_world: tuple[float, World] | None = None
        """Time and result of the last read of its environment, without tokens."""
        self.rehearsal: Iterator[Printed | float] | None = None
        """Rehearsal of its command, from its start on."""
        self.next_output: Printed | float | None = None
        """Next output of the rehearsal, or the time of its next step; None at its end."""

    def drop_volume_files(self) -> None:
        """Drop the variables and the files of volumes, which are read again when they are needed."""
        for path, data in self.volume_files.items():
            if self.files.get(path) is data:
                del self.files[path]
        self.volume_files = {}
        self.cached_world = None
        self.volume_size = 0


class Containers:
    """Containers of all nodes.

    `resync` is called with the key of a pod that needs a sync as something in it has changed.
    """

    def __init__(self) -> None:
        self.resync: Callable[[Key], None] = _ignore
        self._exits: dict[str, dict[str, ContainerExit]] = {}
        self._evicted: dict[str, str] = {}
        self._refused: set[str] = set()
        """UIDs of pods whose refusal of requests was recorded as an event."""
        self._files: dict[str, ContainerFiles] = {}
        """Files by container ID; the most recently used come last."""
        self._volume_size = 0
        self._written: dict[str, dict[str, int]] = {}
        """Bytes written by containers, by namespace and container ID; the most recently used come last."""
        self._records: dict[str, dict[str, ContainerRecord]] = {}
        self.contents: Final = Contents(lambda container_id: self.files_of(container_id).files)
        self.shares: Final = self.contents.shares
        """CPU time and memory of programs in containers, by namespace."""
        self.usages: Final = Usages()
        """CPU and memory that containers use."""

    def end(self, pod: Pod, status: ContainerStatus, exit_code: int, at: float) -> None:
        """Record that the container's process has ended, and sync its pod."""
        self._exits.setdefault(pod.metadata.uid, {})[status.name] = ContainerExit(status.container_id, exit_code, at)
        self.resync(key_of(pod))

    def exits(self, uid: str) -> dict[str, ContainerExit]:
        """Return the ends of containers of a pod from inside, by container name."""
        return self._exits.get(uid, {})

    def files_of(self, container_id: str) -> ContainerFiles:
        """Return the files of a container; callers that run something in the container change them."""
        files = self._files.pop(container_id, None)
        if files is None:
            files = ContainerFiles()
            if len(self._files) >= _MOST_WITH_FILES:
                self._drop(next(iter(self._files)))
        self._files[container_id] = files
        return files

    def _drop(self, container_id: str) -> None:
        inside = self._files.pop(container_id, None)
        if inside is not None:
            self._volume_size -= inside.volume_size

    def count_volume_files(self, container_id: str, size: int) -> None:
        """Record the bytes of variables and files of volumes that are kept for a container.

        If all containers keep too much, those of the least recently used ones are evicted, and read again for their
        next command. A container whose own command changes files is evicted as a whole, as its command has them too.
        """
        inside = self._files.get(container_id)
        if inside is None:
            return
        self._volume_size += size - inside.volume_size
        inside.volume_size = size
        if self._volume_size <= _MOST_VOLUME_BYTES:
            return
        for oldest, each in tuple(self._files.items()):
            if self._volume_size <= _MOST_VOLUME_BYTES:
                return
            if each is inside:
                continue
            if each.rehearsal is not None and each.volume_size:
                self._drop(oldest)
            else:
                self._volume_size -= each.volume_size
                each.drop_volume_files()

    def count_written(self, pod: Pod, container_id: str) -> None:
        """Count the files of a container in which something may have been written.

        If the containers of a namespace keep too much, the files of the least recently used ones are evicted.
        """
        written = self._written.pop(pod.metadata.namespace, {})
        written.pop(container_id, None)
        inside = self._files.get(container_id)
        if inside is not None:
            given = inside.volume_files
            written[container_id] = sum(
                bytes_of_file(path, data) for path, data in inside.files.items() if given.get(path) is not data
            )
        kept = {each: size for each, size in written.items() if size and each in self._files}
        total = sum(kept.values())
        while total > _MOST_WRITTEN and len(kept) > 1:
            oldest = next(iter(kept))
            total -= kept.pop(oldest)
            self._drop(oldest)
        if kept:
            self._written[pod.metadata.namespace] = kept

    def records(self, uid: str) -> dict[str, ContainerRecord]:
        """Return the kubelet's records of a pod's containers, by container name."""
        return self._records.get(uid, {})

    def set_records(self, uid: str, records: dict[str, ContainerRecord]) -> None:
        """Replace the kubelet's records of a pod's containers."""
        if records:
            self._records[uid] = records
        else:
            self._records.pop(uid, None)

    def evict(self, pod: Pod, message: str) -> None:
        """Mark a pod as evicted, with the reason, and sync it."""
        self._evicted[pod.metadata.uid] = message
        self.resync(key_of(pod))

    def is_first_refusal(self, pod: Pod) -> bool:
        """Return True on the first call for a pod."""
        uid = pod.metadata.uid
        is_first = uid not in self._refused
        self._refused.add(uid)
        return is_first

    def eviction_message(self, uid: str) -> str:
        """Return the reason for the eviction of a pod; "" if it is not evicted."""
        return self._evicted.get(uid, "")

    def forget(self, pod: Pod, *, gone: bool) -> None:
        """Forget a pod of which nothing runs any more. With `gone` the pod is deleted, and so are its own volumes."""
        uid = pod.metadata.uid
        if gone:
            self.contents.forget(pod)
            for status in all_statuses(pod.status):
                self._drop(status.container_id)
        else:
            self.contents.stop_commands(pod)
        self._exits.pop(uid, None)
        self._records.pop(uid, None)
        self._evicted.pop(uid, None)
        self._refused.discard(uid)


def _ignore(_: Key) -> None:
    """Do nothing: pods are not synced yet."""
