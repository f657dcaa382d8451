"""Sets of tolerations: which one says more than another, and two sets made one (pkg/util/tolerations)."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.core.v1 import Toleration


def merge_tolerations(first: list[Toleration], second: Iterable[Toleration]) -> list[Toleration]:
    """Both without those that another one includes; of equal ones the first stays."""
    every = [*first, *second]
    merged: list[Toleration] = []
    for index, each in enumerate(every):
        if any(includes(other, each) for other in merged):
            continue
        if not any(other != each and includes(other, each) for other in every[index + 1 :]):
            merged.append(each)
    return merged


def all_included(tolerations: Iterable[Toleration], allowed: list[Toleration]) -> bool:
    """Whether each of them is included in an allowed one."""
    return all(any(includes(wide, each) for wide in allowed) for each in tolerations)


def includes(wide: Toleration, narrow: Toleration) -> bool:
    """Whether whatever `narrow` tolerates is tolerated by `wide`."""
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and narrow.effect != wide.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator == "Exists":
        return True
    return wide.operator in ("", "Equal") and narrow.operator == "Equal" and narrow.value == wide.value
