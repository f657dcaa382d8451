"""Back-off of a Job before it replaces failed pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.work.backoff import Backoff

_BACKOFF: Final = Backoff(10.0, 600.0)
"""Seconds of back-off after the first failure; each further failure doubles it."""


class Failures(Struct, frozen=True):
    """Number of failed pods since the last success, and the time of the last failure in seconds since 1970."""

    count: int = 0
    last: int = 0

    def after(self, succeeded: Iterable[Pod], failed: Iterable[Pod]) -> Failures:
        """Return the failures including pods that have finished since."""
        ended = sorted(map(finish_time, failed))
        success = max(map(finish_time, succeeded), default=None)
        if success is not None:
            later = [each for each in ended if each > success]
            return Failures(len(later), later[-1] if later else 0)
        return Failures(self.count + len(ended), ended[-1]) if ended else self

    def seconds_left(self, now: int) -> int:
        """Return the remaining seconds of back-off."""
        return seconds_left(self.count, self.last, now)


def seconds_left(failures: int, last: int, now: int) -> int:
    """Return the remaining seconds of back-off after `failures` failures."""
    if failures == 0:
        return 0
    return max(int(_BACKOFF.wait(failures - 1)) - (now - last), 0)


def finish_time(pod: Pod) -> int:
    """Return the time at which a pod ended, in seconds since 1970, or the best estimate of it."""
    ended = _of_containers(pod)
    if ended is not None:
        return ended
    ready = find_condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return times.unix(ready.last_transition_time)
    metadata = pod.metadata
    if metadata.deletion_timestamp:
        return times.unix(times.shifted(metadata.deletion_timestamp, -(metadata.deletion_grace_period_seconds or 0)))
    return times.unix(metadata.creation_timestamp or times.now())


def _of_containers(pod: Pod) -> int | None:
    """Return the end of the last container; None if a container has not ended."""
    sidecars = {each.name for each in pod.spec.init_containers if is_sidecar(each)}
    ended = _latest(None, pod.status.container_statuses, lambda _: True)
    return _latest(ended, pod.status.init_container_statuses, lambda each: each.name in sidecars)


def _latest(
    before: int | None, statuses: Iterable[ContainerStatus], counts: Callable[[ContainerStatus], bool]
) -> int | None:
    latest = before
    for each in filter(counts, statuses):
        ended = each.state.terminated
        if ended is None or not ended.finished_at:
            return None
        latest = max(latest or 0, times.unix(ended.finished_at))
    return latest
