"""Merging of tolerations, and the test that one toleration includes another (pkg/util/tolerations)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from steersman.api.core.v1 import Toleration

_Identity = tuple[Any, ...]
_Scope = tuple[str, str, str | None]
"""Key, effect and value that a toleration matches; the value None matches any."""


def merge_tolerations(first: list[Toleration], second: Iterable[Toleration]) -> list[Toleration]:
    """Return both lists joined, without tolerations that another one includes. Of equal ones the first stays."""
    every = [*first, *second]
    later = _Tolerations()
    exceeded = []
    for each in reversed(every):
        exceeded.append(later.include_another(each))
        later.add(each)
    merged = _Tolerations()
    compatible = []
    for each, is_exceeded in zip(every, reversed(exceeded), strict=True):
        if not (is_exceeded or merged.include(each)):
            merged.add(each)
            compatible.append(each)
    return compatible


def all_included(tolerations: Iterable[Toleration], allowed: list[Toleration]) -> bool:
    """Return True if every toleration is included in an allowed one."""
    wide = _Tolerations()
    for each in allowed:
        wide.add(each)
    return all(map(wide.include, tolerations))


class _Tolerations:
    """Tolerations indexed by key, effect and value, so that a toleration is compared with few others.

    A toleration includes another if it tolerates every taint that the other tolerates.
    """

    def __init__(self) -> None:
        self._all: set[_Identity] = set()
        self._longest: dict[_Scope, list[tuple[float, _Identity]]] = {}
        """For each key, effect and value the two different tolerations of longest duration in seconds, the longest
        first.
        """

    def add(self, wide: Toleration) -> None:
        identity: _Identity = msgspec.structs.astuple(wide)
        if identity in self._all:
            return
        self._all.add(identity)
        if wide.operator == "Exists":
            reach: _Scope = wide.key, wide.effect, None
        elif wide.operator in ("", "Equal"):
            reach = wide.key, wide.effect, wide.value
        else:
            return  # with any other operator a toleration includes only equal ones
        limited = wide.effect == "NoExecute" and wide.toleration_seconds is not None
        seconds = wide.toleration_seconds if limited else math.inf
        longest = self._longest.setdefault(reach, [])
        longest.append((seconds or 0, identity))
        if len(longest) > 1:
            longest.sort(key=lambda each: each[0], reverse=True)
            del longest[2:]

    def include(self, narrow: Toleration) -> bool:
        """Return True if one of the tolerations includes `narrow`."""
        return msgspec.structs.astuple(narrow) in self._all or self.include_another(narrow)

    def include_another(self, narrow: Toleration) -> bool:
        """Return True if a toleration that is not equal to `narrow` includes it."""
        identity: _Identity = msgspec.structs.astuple(narrow)
        seconds = math.inf if narrow.toleration_seconds is None else narrow.toleration_seconds
        for reach in _including_scopes(narrow):
            needed = seconds if reach[1] == "NoExecute" else -math.inf
            for longest, other in self._longest.get(reach, ()):
                if other != identity:
                    if longest >= needed:
                        return True
                    break
        return False


def _including_scopes(narrow: Toleration) -> Iterator[_Scope]:
    for effect in dict.fromkeys((narrow.effect, "")):
        for key in dict.fromkeys((narrow.key, "")):
            yield key, effect, None
        if narrow.operator == "Equal":
            yield narrow.key, effect, narrow.value
