"""Set-up of volumes from ConfigMaps and Secrets: a pod waits until all of them that it names exist.

Each volume is retried with a back-off that doubles (pkg/volume/util/operationexecutor,
pkg/util/goroutinemap/exponentialbackoff).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from steersman.api.core.v1 import Pod
from steersman.nodes.context import PodEvent
from steersman.nodes.references import Find, volume_error
from steersman.work.backoff import Backoff

_BACKOFF: Final = Backoff(0.5, 122.0)
"""Seconds between two attempts."""


class FailedSetup(NamedTuple):
    """Last failed attempt for a volume, in seconds since 1970, and the number of failures before it."""

    at: float
    failures: int

    @property
    def next(self) -> float:
        """Time of the next attempt."""
        return self.at + _BACKOFF.wait(self.failures)


class SetupResult(NamedTuple):
    """Result of an attempt to set up the volumes of a pod."""

    failed: dict[str, FailedSetup]
    """Failed attempts by volume name."""
    events: tuple[PodEvent, ...]
    next_sync: float | None
    """Time of the next attempt."""


def set_up_volumes(pod: Pod, before: Mapping[str, FailedSetup], find: Find, now: float) -> SetupResult:
    """Try to set up the volumes of a pod. `before` are failed attempts so far, by volume name."""
    failed: dict[str, FailedSetup] = {}
    events: list[PodEvent] = []
    for volume in pod.spec.volumes:
        error = volume_error(volume, find)
        if not error:
            continue
        last = before.get(volume.name)
        if last is not None and now < last.next:
            failed[volume.name] = last
            continue
        failed[volume.name] = FailedSetup(now, 0 if last is None else last.failures + 1)
        text = f'MountVolume.SetUp failed for volume "{volume.name}" : {error}'
        events.append(PodEvent("Warning", "FailedMount", text))
    next_sync = min((each.next for each in failed.values()), default=None)
    return SetupResult(failed, tuple(events), next_sync)
