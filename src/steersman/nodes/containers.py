"""What is known of running containers beside their pods' statuses: how one was ended from inside, and what was written
in it. It is lost when the process ends, as what is in a container is when that ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.client.informer import Key, key_of
from steersman.nodes.images import Pulls

_MOST_WITH_FILES: Final = 1000
"""Containers whose files are kept; those that were used least recently are forgotten."""


class Ended(NamedTuple):
    """A container has ended by itself, before it was due."""

    container_id: str
    exit_code: int
    at: float
    """Seconds since 1970."""
    reason: str = ""
    """Where it is not said by the exit code."""


class Containers:
    """Of all nodes. `look` is called with a pod that has changed inside."""

    def __init__(self) -> None:
        self.look: Callable[[Key], None] = _nobody
        self._ended: dict[str, dict[str, Ended]] = {}
        self._files: dict[str, dict[str, bytes]] = {}
        self._pulls: dict[str, dict[str, Pulls]] = {}

    def end(self, pod: Pod, status: ContainerStatus, exit_code: int, at: float) -> None:
        """The container's process ends now."""
        self._ended.setdefault(pod.metadata.uid, {})[status.name] = Ended(status.container_id, exit_code, at)
        self.look(key_of(pod))

    def ended(self, uid: str) -> dict[str, Ended]:
        """Those of a pod, by name."""
        return self._ended.get(uid, {})

    def files(self, container_id: str) -> dict[str, bytes]:
        """What has been written in a container, by path: to be changed by whoever runs something in it."""
        found = self._files.pop(container_id, None)
        if found is None:
            found = {}
            if len(self._files) >= _MOST_WITH_FILES:
                del self._files[next(iter(self._files))]
        self._files[container_id] = found
        return found

    def pulls(self, uid: str) -> dict[str, Pulls]:
        """The images that a pod's containers have been waiting for."""
        return self._pulls.get(uid, {})

    def put_pulls(self, uid: str, pulls: dict[str, Pulls]) -> None:
        """Remembers them."""
        if pulls:
            self._pulls[uid] = pulls
        else:
            self._pulls.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._ended.pop(uid, None)
        self._pulls.pop(uid, None)


def _nobody(_: Key) -> None:
    """Nobody looks at pods yet."""
