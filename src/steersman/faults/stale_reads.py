"""Older revisions at which faults answer reads."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Final, NamedTuple, Protocol

from steersman.net.message import Peer

_MOST_SAMPLES: Final = 512

ResourceOf = tuple[str, str]
"""Group and plural of a resource."""


class Revisions(Protocol):
    """Storage, as far as reads of the past need it."""

    @property
    def revision(self) -> int:
        """The newest revision."""
        ...

    @property
    def compact_revision(self) -> int:
        """The oldest readable revision, 0 if nothing was compacted."""
        ...


class Read(NamedTuple):
    """A get or list that may be answered from the past: its resourceVersion, resource and connection."""

    version: str
    resource: ResourceOf
    peer: Peer


class Timeline:
    """Revisions at past times, as far as somebody was there to note them: each request notes one."""

    def __init__(self, seconds: float) -> None:
        """Keep the revisions of the last `seconds`."""
        self._seconds = seconds
        self._samples: deque[tuple[float, int]] = deque(maxlen=_MOST_SAMPLES)

    def note(self, revision: int) -> None:
        """Note the present revision."""
        now, samples = monotonic(), self._samples
        if samples and samples[-1][1] == revision:
            return
        if len(samples) > 1 and now - samples[-2][0] < self._seconds / _MOST_SAMPLES:
            samples[-1] = samples[-1][0], revision  # in place of one that is almost as old
        else:
            samples.append((now, revision))

    def then(self) -> int:
        """Return the revision of `seconds` ago, the oldest noted one if nothing was noted before."""
        until = monotonic() - self._seconds
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= until:
            samples.popleft()
        return samples[0][1]
