"""Newest revisions that each connection was shown."""

from __future__ import annotations

from time import monotonic
from typing import Final

from steersman.faults.interception import OpenWatch
from steersman.faults.stale_reads import ResourceOf, Revisions
from steersman.machinery.errors.status import StatusError
from steersman.net.message import BodyWriter, Peer

MOST_SHOWN: Final = 10_000
"""Pairs of a connection and a resource that are remembered. Beyond that all connections count as opened before."""


class ShownRevisions:
    """Revision of each resource up to which a connection may have been shown its objects."""

    def __init__(self, revision: int) -> None:
        """`revision` is the present one, which connections that are open already may have been shown."""
        self._forget(revision)
        self._watches: dict[tuple[int, ResourceOf], int] = {}

    def _forget(self, revision: int) -> None:
        self._since, self._before = monotonic(), revision
        self._shown: dict[tuple[int, ResourceOf], tuple[int, Peer]] = {}
        """By the identity of a connection's peer, which is kept so that no other one gets it."""

    def floor(self, peer: Peer, resource: ResourceOf, now: int) -> int:
        """Return the oldest revision that a connection may be shown; `now` is the present one."""
        key = id(peer), resource
        if self._watches.get(key):
            return now
        before = self._before if peer.since <= self._since else 0
        return max(before, self._shown.get(key, (0, peer))[0])

    def note(self, peer: Peer, resource: ResourceOf, revision: int) -> None:
        """Note that a connection was shown objects as of a revision."""
        key = id(peer), resource
        known = self._shown.get(key)
        if known is None and len(self._shown) >= MOST_SHOWN:
            self._forget(revision)
        if known is None or known[0] < revision:
            self._shown[key] = revision, peer

    def watched(self, peer: Peer, resource: ResourceOf, revisions: Revisions, body: OpenWatch) -> OpenWatch:
        """Return the body of a watch, during which its connection is shown all changes."""
        self.note(peer, resource, revisions.revision)  # keeps the peer
        return _NotedWatch(self, (peer, resource), revisions, body)

    def opened(self, peer: Peer, resource: ResourceOf) -> None:
        """Note that a watch begins."""
        key = id(peer), resource
        self._watches[key] = self._watches.get(key, 0) + 1

    def closed(self, peer: Peer, resource: ResourceOf, revision: int) -> None:
        """Note that a watch ends, which was shown changes up to a revision."""
        key = id(peer), resource
        left = self._watches.pop(key, 0) - 1
        if left > 0:
            self._watches[key] = left
        self.note(peer, resource, revision)


class _NotedWatch:
    """Body of a watch that tells of its beginning and its end."""

    def __init__(
        self, shown: ShownRevisions, key: tuple[Peer, ResourceOf], revisions: Revisions, inner: OpenWatch
    ) -> None:
        self._shown = shown
        self._key = key
        self._revisions = revisions
        self._inner = inner

    def start(self, writer: BodyWriter) -> None:
        """Begin with the initial events."""
        self._shown.opened(*self._key)
        self._inner.start(writer)

    def closed(self) -> None:
        """Release the watch."""
        self._shown.closed(*self._key, self._revisions.revision)
        self._inner.closed()

    def finish(self) -> None:
        """End the watch."""
        self._inner.finish()

    def failed(self, error: StatusError | None) -> None:
        """End the watch with an event of an error."""
        self._inner.failed(error)
