"""Patterns of texts and resources, in which `*` stands for any text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steersman.machinery.identity.action import Action


class _Wild(NamedTuple):
    """A pattern: its beginning, the parts between stars, its end. Without stars it is only its beginning."""

    first: str
    middle: tuple[str, ...] | None
    last: str

    def fits(self, text: str) -> bool:
        """Return True if a text fits the pattern, in time linear in both."""
        if self.middle is None:
            return text == self.first
        at, end = len(self.first), len(text) - len(self.last)
        if at > end or not text.startswith(self.first) or not text.endswith(self.last):
            return False
        for each in self.middle:
            found = text.find(each, at, end)
            if found < 0:
                return False
            at = found + len(each)
        return True


def _wild(pattern: str) -> _Wild:
    first, *rest = pattern.split("*")
    if not rest:
        return _Wild(pattern, None, "")
    return _Wild(first, tuple(filter(None, rest[:-1])), rest[-1])


class Patterns:
    """Patterns of which a text must fit one; false without any, which every text fits."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._exact = frozenset(each for each in patterns if "*" not in each)
        self._wild = tuple(_wild(each) for each in patterns if "*" in each)
        self._is_empty = not patterns

    def __bool__(self) -> bool:
        return not self._is_empty

    @property
    def wild(self) -> int:
        """Number of patterns with `*`, which are tried one by one."""
        return len(self._wild)

    @property
    def exact(self) -> frozenset[str]:
        """Texts of which a fitting one is one; empty if others may fit, too."""
        return frozenset() if self._wild else self._exact

    def fit(self, text: str) -> bool:
        """Return True if a text fits a pattern, or if there are none."""
        return self._is_empty or text in self._exact or any(each.fits(text) for each in self._wild)


class ResourcePatterns:
    """Patterns of resources as in RBAC rules, also with their group: `pods/status`, `deployments.apps`, `*/scale`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._all = "*" in patterns
        self._is_empty = not patterns
        parts = [(resource, subresource) for resource, _, subresource in (each.partition("/") for each in patterns)]
        self._exact = frozenset(each for each in parts if "*" not in "".join(each))
        self._wild = tuple((_wild(first), _wild(second)) for first, second in parts if "*" in first + second)

    @property
    def wild(self) -> int:
        """Number of patterns with `*`, which are tried one by one."""
        return len(self._wild)

    @property
    def exact(self) -> frozenset[tuple[str, str]]:
        """Resources, perhaps with their group, and subresources that fit; empty if others may fit, too."""
        return frozenset() if self._wild else self._exact

    def fit(self, action: Action) -> bool:
        """Return True if a request's resource fits a pattern, or if there are none."""
        if self._is_empty:
            return True
        resource, subresource = action.resource, action.subresource
        if not resource:
            return False
        full = f"{resource}.{action.group}" if action.group else resource
        return (
            self._all
            or (resource, subresource) in self._exact
            or (full, subresource) in self._exact
            or any(
                second.fits(subresource) and (first.fits(resource) or first.fits(full)) for first, second in self._wild
            )
        )


class CompiledMatch(NamedTuple):
    """Lists of a fault that a request must fit."""

    users: Patterns
    groups: Patterns
    user_agents: Patterns
    verbs: Patterns
    resources: ResourcePatterns
    namespaces: Patterns
    names: Patterns

    @property
    def wild(self) -> int:
        """Number of patterns with `*`, which are tried one by one."""
        return sum(each.wild for each in self)
