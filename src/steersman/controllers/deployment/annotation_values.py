"""Annotations that a Deployment keeps in its ReplicaSets (pkg/controller/deployment/util)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from steersman.api.apps.v1 import Deployment, ReplicaSet
from steersman.controllers.deployment.fence_posts import max_surge, replicas_of
from steersman.work.patterns import late_pattern

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
"""Revision to roll back to, from the rollback request of an older API version."""

_OWN: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        ROLLBACK_TO,
    }
)
"""Annotations that are not copied from a Deployment to its ReplicaSets."""
_MAX_HISTORY: Final = 2000
"""Most characters of the list of revisions."""
_INT64: Final = late_pattern(r"[+-]?[0-9]{1,19}", re.ASCII)
_UINT32: Final = late_pattern(r"[0-9]{1,10}", re.ASCII)


def revision_of(obj: Deployment | ReplicaSet) -> int | None:
    """Return the revision number; 0 if there is none, None if it cannot be parsed."""
    return _int64(obj.metadata.annotations.get(REVISION, "0"))


def _int64(text: str) -> int | None:
    value = int(text) if _INT64.fullmatch(text) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def max_revision(sets: Iterable[ReplicaSet]) -> int:
    """Return the highest revision."""
    return max((revision_of(each) or 0 for each in sets), default=0)


def last_revision(sets: Iterable[ReplicaSet]) -> int:
    """Return the second highest revision, 0 if there is none."""
    highest = before = 0
    for each in sets:
        revision = revision_of(each)
        if revision is None:
            continue
        if revision >= highest:
            highest, before = revision, highest
        elif revision > before:
            before = revision
    return before


def rollback_to(deployment: Deployment) -> int | None:
    """Return the revision to roll back to, 0 for the last one; None if no rollback is requested."""
    text = deployment.metadata.annotations.get(ROLLBACK_TO, "")
    return _int64(text) if text else None


def desired_replicas(replica_set: ReplicaSet) -> int | None:
    """Return the Deployment's desired number of pods at the time of the annotation, None if it is missing."""
    return _number(replica_set, DESIRED_REPLICAS)


def max_replicas(replica_set: ReplicaSet) -> int | None:
    """Return the Deployment's highest allowed number of pods at the time of the annotation, None if it is missing."""
    return _number(replica_set, MAX_REPLICAS)


def _number(replica_set: ReplicaSet, name: str) -> int | None:
    text = replica_set.metadata.annotations.get(name, "")
    value = int(text) if _UINT32.fullmatch(text) else None
    return value if value is not None and value < 2**31 else None


def replicas_annotations(deployment: Deployment) -> dict[str, str]:
    """Return the annotations about a Deployment's size."""
    desired = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + max_surge(deployment))}


def update_annotations(deployment: Deployment, replica_set: ReplicaSet, revision: int) -> bool:
    """Copy a Deployment's annotations to its new ReplicaSet and set its revision. Return True if anything changed.

    The ReplicaSet is changed in place. Its former revisions are kept in an annotation.
    """
    own = replica_set.metadata.annotations
    before = dict(own)
    own.update(inherited_annotations(deployment.metadata.annotations))
    old = own.get(REVISION)
    old_revision = 0 if not old else _int64(old)
    if old_revision is None:
        return False
    if old_revision < revision:
        own[REVISION] = str(revision)
        if old is not None:
            _append_to_history(own, old)
    return own != before


def inherited_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """Return the annotations that Deployments and their ReplicaSets have in common."""
    return {key: value for key, value in annotations.items() if key not in _OWN}


def own_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """Return the annotations that Deployments and ReplicaSets each have for themselves."""
    return {key: value for key, value in annotations.items() if key in _OWN}


def _append_to_history(annotations: dict[str, str], revision: str) -> None:
    history = annotations.get(REVISION_HISTORY, "")
    revisions = history.split(",")
    if not revisions[0]:
        annotations[REVISION_HISTORY] = revision
        return
    length, start = len(history) + len(revision) + 1, 0
    while length > _MAX_HISTORY and start < len(revisions):
        length -= len(revisions[start]) + 1
        start += 1
    if length <= _MAX_HISTORY:
        annotations[REVISION_HISTORY] = ",".join([*revisions[start:], revision])
