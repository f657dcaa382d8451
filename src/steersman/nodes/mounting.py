"""Volumes that are filled from ConfigMaps and Secrets: a pod waits until all that it names is there.

Each volume is tried again after a wait that is doubled each time (pkg/volume/util/operationexecutor,
pkg/util/goroutinemap/exponentialbackoff); it counts as filled as soon as it can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from steersman.api.core.v1 import Pod
from steersman.nodes.place import Happened
from steersman.nodes.references import Find, missing_in
from steersman.work.backoff import Backoff

_BACKOFF: Final = Backoff(0.5, 122.0)
"""Seconds between two tries."""


class Tried(NamedTuple):
    """When a volume was tried in vain last, in seconds since 1970, and how often in vain before."""

    at: float
    failures: int

    @property
    def next(self) -> float:
        """When it is tried again."""
        return self.at + _BACKOFF.wait(self.failures)


class Mounting(NamedTuple):
    """What came of a try."""

    tried: dict[str, Tried]
    """Volumes that cannot be filled, by name."""
    happened: tuple[Happened, ...]
    again: float | None
    """When there is to be another."""


def mount(pod: Pod, before: Mapping[str, Tried], find: Find, now: float) -> Mounting:
    """Tries the volumes of a pod."""
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
