"""Limits of a rollout: surplus and unavailable pods (pkg/controller/deployment/util)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.apps.v1 import Deployment, ReplicaSet
from steersman.controllers.workloads.int_or_percent import scaled

MAX_INT32: Final = 2**31 - 1
"""Value of a deadline or limit that means none."""


def replicas_of(obj: Deployment | ReplicaSet) -> int:
    """Return the desired number of pods."""
    return 1 if obj.spec.replicas is None else obj.spec.replicas


def is_rolling(deployment: Deployment) -> bool:
    """Return True if the strategy is a rolling update."""
    return deployment.spec.strategy.type == "RollingUpdate"


def max_surge(deployment: Deployment) -> int:
    """Return the number of pods that may exist beyond the desired number."""
    return _fence_posts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """Return the number of pods that may be unavailable."""
    if not is_rolling(deployment):
        return 0
    return min(_fence_posts(deployment)[1], replicas_of(deployment))


def _fence_posts(deployment: Deployment) -> tuple[int, int]:
    """Return surge and unavailable pods. Both are never 0, because then no rollout could proceed."""
    rolling, replicas = deployment.spec.strategy.rolling_update, replicas_of(deployment)
    surge = scaled(rolling.max_surge if rolling else None, replicas, round_up=True)
    unavailable = scaled(rolling.max_unavailable if rolling else None, replicas)
    return surge, 1 if surge == 0 and unavailable == 0 else unavailable


def new_replicas(deployment: Deployment, everything: Iterable[ReplicaSet], new: ReplicaSet) -> int:
    """Return the number of pods that the new ReplicaSet should have now."""
    desired, has = replicas_of(deployment), replicas_of(new)
    if not is_rolling(deployment):
        return desired
    rolling = deployment.spec.strategy.rolling_update
    most = desired + scaled(rolling.max_surge if rolling else None, desired, round_up=True)
    now = sum(map(replicas_of, everything))
    return has if now >= most else has + min(most - now, desired - has)


def has_progress_deadline(deployment: Deployment) -> bool:
    """Return True if the Deployment has a deadline for progress."""
    return deployment.spec.progress_deadline_seconds not in (None, MAX_INT32)


def by_creation(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return ReplicaSets sorted by creation time, the oldest first."""
    return sorted(sets, key=_creation)


def by_size(sets: Iterable[ReplicaSet], *, newer_first: bool) -> list[ReplicaSet]:
    """Return ReplicaSets sorted by size, the largest first; equal sizes by age."""
    by_creation = sorted(sets, key=_creation, reverse=newer_first)
    return sorted(by_creation, key=lambda each: -replicas_of(each))


def _creation(each: ReplicaSet) -> tuple[str, str]:
    return each.metadata.creation_timestamp or "", each.metadata.name


def active(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets that should have pods."""
    return [each for each in sets if replicas_of(each) > 0]
