"""Set-up of volumes from ConfigMaps and Secrets: a pod waits until all of them that it names exist.

Each volume is retried with a back-off that doubles (pkg/volume/util/operationexecutor,
pkg/util/goroutinemap/exponentialbackoff).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from steersman.api.core.v1 import Pod
from steersman.nodes.place import Happened
from steersman.nodes.references import Find, missing_in
from steersman.work.backoff import Backoff

_BACKOFF: Final = Backoff(0.5, 122.0)
"""Seconds between two attempts."""


class Tried(NamedTuple):
    """Last failed attempt for a volume, in seconds since 1970, and the number of failures before it."""

    at: float
    failures: int

    @property
    def next(self) -> float:
        """Time of the next attempt."""
        return self.at + _BACKOFF.wait(self.failures)


class Mounting(NamedTuple):
    """Result of an attempt to set up the volumes of a pod."""

    tried: dict[str, Tried]
    """Failed attempts by volume name."""
    happened: tuple[Happened, ...]
    again: float | None
    """Time of the next attempt."""


def mount(pod: Pod, before: Mapping[str, Tried], find: Find, now: float) -> Mounting:
    """Try to set up the volumes of a pod. `before` are failed attempts so far, by volume name."""
    tried: dict[str, Tried] = {}
    happened: list[Happened] = []
    for volume in pod.spec.volumes:
        error = missing_in(volume, find)
        if not error:
            continue
        last = before.get(volume.name)
        if last is not None and now < last.next:
            tried[volume.name] = last
            continue
        tried[volume.name] = Tried(now, 0 if last is None else last.failures + 1)
        text = f'MountVolume.SetUp failed for volume "{volume.name}" : {error}'
        happened.append(Happened("Warning", "FailedMount", text))
    again = min((each.next for each in tried.values()), default=None)
    return Mounting(tried, tuple(happened), again)
