"""Sets of tolerations: which one says more than another, and two sets made one (pkg/util/tolerations)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from steersman.api.core.v1 import Toleration

_Identity = tuple[Any, ...]
_Reach = tuple[str, str, str | None]
"""What a toleration is about: its key, its effect, and its value (None: any)."""


def merge_tolerations(first: list[Toleration], second: Iterable[Toleration]) -> list[Toleration]:
    """Both without those that another one includes; of equal ones the first stays."""
    every = [*first, *second]
    later = _Tolerations()
    exceeded = []
    for each in reversed(every):
        exceeded.append(later.include_another(each))
        later.add(each)
    merged = _Tolerations()
    kept = []
    for each, is_exceeded in zip(every, reversed(exceeded), strict=True):
        if not (is_exceeded or merged.include(each)):
            merged.add(each)
            kept.append(each)
    return kept


def all_included(tolerations: Iterable[Toleration], allowed: list[Toleration]) -> bool:
    """Whether each of them is included in an allowed one."""
    wide = _Tolerations()
    for each in allowed:
        wide.add(each)
    return all(map(wide.include, tolerations))


class _Tolerations:
    """Tolerations by what they are about, so that one is compared with few others only.

    One includes another if whatever the other tolerates is tolerated by it.
    """

    def __init__(self) -> None:
        self._all: set[_Identity] = set()
        self._longest: dict[_Reach, list[tuple[float, _Identity]]] = {}
        """For each reach the two that tolerate for longest, in seconds, unlike each other; the longest first."""

    def add(self, wide: Toleration) -> None:
        identity: _Identity = msgspec.structs.astuple(wide)
        if identity in self._all:
            return
        self._all.add(identity)
        if wide.operator == "Exists":
            reach: _Reach = wide.key, wide.effect, None
        elif wide.operator in ("", "Equal"):
            reach = wide.key, wide.effect, wide.value
        else:
            return  # it includes its equals only
        limited = wide.effect == "NoExecute" and wide.toleration_seconds is not None
        seconds = wide.toleration_seconds if limited else math.inf
        longest = self._longest.setdefault(reach, [])
        longest.append((seconds or 0, identity))
        if len(longest) > 1:
            longest.sort(key=lambda each: each[0], reverse=True)
            del longest[2:]

    def include(self, narrow: Toleration) -> bool:
        """Whether one of them includes it."""
        return msgspec.structs.astuple(narrow) in self._all or self.include_another(narrow)

    def include_another(self, narrow: Toleration) -> bool:
        """Whether one that is not its equal includes it."""
        identity: _Identity = msgspec.structs.astuple(narrow)
        seconds = math.inf if narrow.toleration_seconds is None else narrow.toleration_seconds
        for reach in _reaches_that_hold(narrow):
            needed = seconds if reach[1] == "NoExecute" else -math.inf
            for longest, other in self._longest.get(reach, ()):
                if other != identity:
                    if longest >= needed:
                        return True
                    break
        return False


def _reaches_that_hold(narrow: Toleration) -> Iterator[_Reach]:
    for effect in dict.fromkeys((narrow.effect, "")):
        for key in dict.fromkeys((narrow.key, "")):
            yield key, effect, None
        if narrow.operator == "Equal":
            yield narrow.key, effect, narrow.value
