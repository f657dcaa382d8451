"""Whether a pod puts up with a node's taints (component-helpers scheduling/corev1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.core.v1 import Taint, Toleration
from steersman.machinery.built_in import taints as built_in

UNSCHEDULABLE_TAINT: Final = Taint(key=built_in.UNSCHEDULABLE, effect="NoSchedule")
_FORBIDDING: Final = frozenset({"NoSchedule", "NoExecute"})
_PREFERRED: Final = "PreferNoSchedule"


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations is of this taint."""
    return any(built_in.tolerates(each, taint) for each in tolerations)


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
