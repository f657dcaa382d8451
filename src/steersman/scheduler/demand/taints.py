"""Whether a pod puts up with a node's taints (component-helpers scheduling/corev1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.core.v1 import Taint, Toleration

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_FORBIDDING: Final = frozenset({"NoSchedule", "NoExecute"})
_PREFERRED: Final = "PreferNoSchedule"


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations is of this taint."""
    return any(_is_of(each, taint) for each in tolerations)


def _is_of(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """The first taint that keeps the pod away."""
    for taint in taints:
        if taint.effect in _FORBIDDING and not tolerates(tolerations, taint):
            return taint
    return None


def disliked(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> int:
    """How many taints speak against the node without forbidding it."""
    some = [each for each in tolerations if each.effect in ("", _PREFERRED)]
    return sum(taint.effect == _PREFERRED and not tolerates(some, taint) for taint in taints)
