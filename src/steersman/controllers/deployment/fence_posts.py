"""How many pods a Deployment may have too many or too few meanwhile (pkg/controller/deployment/util)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.apps.v1 import Deployment, ReplicaSet
from steersman.controllers.workloads.int_or_percent import scaled

MAX_INT32: Final = 2**31 - 1
"""A deadline or a limit of this much is none."""


def replicas_of(obj: Deployment | ReplicaSet) -> int:
    """How many pods are asked for."""
    return 1 if obj.spec.replicas is None else obj.spec.replicas


def is_rolling(deployment: Deployment) -> bool:
    """Whether old pods are replaced by and by."""
    return deployment.spec.strategy.type == "RollingUpdate"


def max_surge(deployment: Deployment) -> int:
    """How many pods more than asked for there may be."""
    return _fence_posts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """How many pods may be missing."""
    if not is_rolling(deployment):
        return 0
    return min(_fence_posts(deployment)[1], replicas_of(deployment))


def _fence_posts(deployment: Deployment) -> tuple[int, int]:
    """Surge and unavailable pods, not both 0: nothing could move then."""
    given, replicas = deployment.spec.strategy.rolling_update, replicas_of(deployment)
    surge = scaled(given.max_surge if given else None, replicas, round_up=True)
    unavailable = scaled(given.max_unavailable if given else None, replicas)
    return surge, 1 if surge == 0 and unavailable == 0 else unavailable


def new_replicas(deployment: Deployment, everything: Iterable[ReplicaSet], new: ReplicaSet) -> int:
    """How many pods the newest ReplicaSet should have now."""
    wanted, has = replicas_of(deployment), replicas_of(new)
    if not is_rolling(deployment):
        return wanted
    given = deployment.spec.strategy.rolling_update
    most = wanted + scaled(given.max_surge if given else None, wanted, round_up=True)
    now = sum(map(replicas_of, everything))
    return has if now >= most else has + min(most - now, wanted - has)


def has_progress_deadline(deployment: Deployment) -> bool:
    """Whether it counts as failed when nothing moves for some time."""
    return deployment.spec.progress_deadline_seconds not in (None, MAX_INT32)


def by_creation(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(sets, key=_creation)


def by_size(sets: Iterable[ReplicaSet], *, newer_first: bool) -> list[ReplicaSet]:
    """The largest first; of one size the newer or the older ones."""
    found = sorted(sets, key=_creation, reverse=newer_first)
    return sorted(found, key=lambda each: -replicas_of(each))


def _creation(each: ReplicaSet) -> tuple[str, str]:
    return each.metadata.creation_timestamp or "", each.metadata.name


def active(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Those that should have pods."""
    return [each for each in sets if replicas_of(each) > 0]
