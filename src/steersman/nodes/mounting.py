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

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 122.0
"""Seconds between two tries."""


class Tried(NamedTuple):
    """When a volume was tried in vain last, and how long it is waited after that. Seconds since 1970, seconds."""

    at: float
    wait: float


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
        if last is not None and now < last.at + last.wait:
            tried[volume.name] = last
            continue
        wait = _FIRST_WAIT if last is None else min(last.wait * 2, _LONGEST_WAIT)
        tried[volume.name] = Tried(now, wait)
        text = f'MountVolume.SetUp failed for volume "{volume.name}" : {error}'
        happened.append(Happened("Warning", "FailedMount", text))
    again = min((each.at + each.wait for each in tried.values()), default=None)
    return Mounting(tried, tuple(happened), again)
