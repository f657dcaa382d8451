"""Taints of nodes and the tolerations of pods (k8s.io/api/core/v1 `toleration.go`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman.api.core.v1 import Taint, Toleration
from steersman.api.resource.v1 import DeviceTaint, DeviceToleration

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """Return True if a toleration matches a taint.

    The operators Lt and Gt, whose feature gate is off, match nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def is_tolerated(taint: Taint | DeviceTaint, tolerations: Iterable[Toleration] | Iterable[DeviceToleration]) -> bool:
    """Return True if any of the tolerations matches this taint."""
    return any(tolerates(each, taint) for each in tolerations)


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint], *effects: str) -> Taint | None:
    """Return the first taint with one of the effects that is not tolerated, or None."""
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, tolerations):
            return taint
    return None


def matching_tolerations(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> list[Toleration] | None:
    """Return the first matching toleration for each taint; None if a taint has none."""
    used = []
    for taint in taints:
        matching = next((each for each in tolerations if tolerates(each, taint)), None)
        if matching is None:
            return None
        used.append(matching)
    return used
