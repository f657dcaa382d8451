"""What is known of running containers beside their pods' statuses: how one was ended from inside, and what was written
in it. It is lost when the process ends, as what is in a container is when that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Final

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.client.informer import Key, key_of
from steersman.nodes.contents import Contents
from steersman.nodes.place import Ended, Memory
from steersman.nodes.rehearsal import Printed
from steersman.nodes.shell.effects import World, taken_by

_MOST_WRITTEN: Final = 64 << 20
"""Bytes of files that are kept of the containers of one namespace."""
_MOST_WITH_FILES: Final = 1000
"""Containers whose files are kept; those that were used least recently are forgotten."""


class Inside:
    """The files in a container, and how far its own command has come that changes some."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.view: MutableMapping[str, bytes] | None = None
        """The same with what is in volumes that it shares; None where there are none."""
        self.given: dict[str, bytes] = {}
        """Those of its volumes, as they were last."""
        self.modes: dict[str, int] = {}
        """Permission bits that commands have given to files and folders."""
        self.around: tuple[float, World] | None = None
        """What it finds around it without tokens, and when that was."""
        self.course: Iterator[Printed | float] | None = None
        """Its command from its start on."""
        self.next: Printed | float | None = None
        """What the command does next, or the time."""


class Containers:
    """Of all nodes. `look` is called with a pod that has changed inside."""

    def __init__(self) -> None:
        self.look: Callable[[Key], None] = _nobody
        self._ended: dict[str, dict[str, Ended]] = {}
        self._evicted: dict[str, str] = {}
        self._refused: set[str] = set()
        """Pods of which it was told that they refuse what they are asked."""
        self._inside: dict[str, Inside] = {}
        self._written: dict[str, dict[str, int]] = {}
        """Bytes that containers keep, by namespace and ID, those that were used last at the end."""
        self._memory: dict[str, dict[str, Memory]] = {}
        self.contents: Final = Contents(lambda container_id: self.inside(container_id).files)
        self.shares: Final = self.contents.shares
        """CPU time and memory of the programs in them."""

    def end(self, pod: Pod, status: ContainerStatus, exit_code: int, at: float) -> None:
        """The container's process ends now."""
        self._ended.setdefault(pod.metadata.uid, {})[status.name] = Ended(status.container_id, exit_code, at)
        self.look(key_of(pod))

    def ended(self, uid: str) -> dict[str, Ended]:
        """Those of a pod, by name."""
        return self._ended.get(uid, {})

    def inside(self, container_id: str) -> Inside:
        """What is in a container: to be changed by whoever runs something in it."""
        found = self._inside.pop(container_id, None)
        if found is None:
            found = Inside()
            if len(self._inside) >= _MOST_WITH_FILES:
                del self._inside[next(iter(self._inside))]
        self._inside[container_id] = found
        return found

    def has_written(self, pod: Pod, container_id: str) -> None:
        """Something may have been written in a container. Where the containers of a namespace keep too much, the files
        of those that were used least recently are forgotten."""
        written = self._written.pop(pod.metadata.namespace, {})
        written.pop(container_id, None)
        inside = self._inside.get(container_id)
        if inside is not None:
            given = inside.given
            written[container_id] = sum(
                taken_by(path, data) for path, data in inside.files.items() if given.get(path) is not data
            )
        kept = {each: size for each, size in written.items() if size and each in self._inside}
        total = sum(kept.values())
        while total > _MOST_WRITTEN and len(kept) > 1:
            oldest = next(iter(kept))
            total -= kept.pop(oldest)
            del self._inside[oldest]
        if kept:
            self._written[pod.metadata.namespace] = kept

    def memory(self, uid: str) -> dict[str, Memory]:
        """What is remembered of a pod's containers, by name."""
        return self._memory.get(uid, {})

    def remember(self, uid: str, memory: dict[str, Memory]) -> None:
        """What is to be remembered of them from now on."""
        if memory:
            self._memory[uid] = memory
        else:
            self._memory.pop(uid, None)

    def evict(self, pod: Pod, message: str) -> None:
        """The node has to be rid of a pod, and says why."""
        self._evicted[pod.metadata.uid] = message
        self.look(key_of(pod))

    def is_first_refusal(self, pod: Pod) -> bool:
        """Return True the first time that it is asked for a pod."""
        uid = pod.metadata.uid
        is_first = uid not in self._refused
        self._refused.add(uid)
        return is_first

    def evicted(self, uid: str) -> str:
        """Why a pod has to go; "" if it may stay."""
        return self._evicted.get(uid, "")

    def forget(self, pod: Pod, *, gone: bool) -> None:
        """Nothing of a pod runs any more; with `gone` the pod is deleted, and has no volumes either."""
        uid = pod.metadata.uid
        if gone:
            self.contents.forget(pod)
        else:
            self.contents.end(pod)
        self._ended.pop(uid, None)
        self._memory.pop(uid, None)
        self._evicted.pop(uid, None)
        self._refused.discard(uid)


def _nobody(_: Key) -> None:
    """Nobody looks at pods yet."""
