"""Taints of nodes and tolerations of pods (component-helpers scheduling/corev1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.core.v1 import Taint, Toleration
from steersman.machinery.built_in.taints import UNSCHEDULABLE, is_tolerated, untolerated

UNSCHEDULABLE_TAINT: Final = Taint(key=UNSCHEDULABLE, effect="NoSchedule")
_PREFERRED: Final = "PreferNoSchedule"


def forbidding(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps the pod off the node, or None."""
    return untolerated(tolerations, taints, "NoSchedule", "NoExecute")


def disliked(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> int:
    """Return the number of untolerated PreferNoSchedule taints."""
    some = [each for each in tolerations if each.effect in ("", _PREFERRED)]
    return sum(taint.effect == _PREFERRED and not is_tolerated(taint, some) for taint in taints)
