"""Index of policy rules by resource or URL, verb and group.

A role may have some 16,000 rules, chosen by anyone with write access to roles in one namespace. Rules are found by
resource or URL through a dictionary. The rules for one resource are scanned linearly until the total of scanned rules
exceeds the cost of an index by verb and group; then that index is built. Thus neither a role with many rules nor a rule
with many verbs and groups costs more than is proportional to its size and the number of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from steersman.api.rbac.v1 import PolicyRule

_FEW: Final = 12
"""Number of rules, and of name sets, up to which they are always scanned."""

_NAMES: Final = 2
"""Index of the object names in the sets of a rule."""

Names = frozenset[str] | None
"""The object names that a right is limited to; None for all."""


class IndexedRule:
    """A policy rule as sets; None matches anything."""

    __slots__ = ("_rule", "_sets")

    def __init__(self, rule: PolicyRule) -> None:
        self._rule = rule
        self._sets: tuple[Names, Names, Names] | None = None

    @property
    def sets(self) -> tuple[Names, Names, Names]:
        """The sets of verbs, API groups and object names, made at the first access."""
        sets = self._sets
        if sets is None:
            rule = self._rule
            names = frozenset(rule.resource_names) or None
            sets = self._sets = _alternatives(rule.verbs or ()), _alternatives(rule.api_groups), names
        return sets

    @property
    def resources(self) -> Names:
        """The set of resources."""
        return _alternatives(self._rule.resources)


def _alternatives(values: Iterable[str]) -> frozenset[str] | None:
    found = frozenset(values)
    return None if "*" in found else found


class RuleIndex:
    """Index of rules by their resources and URLs."""

    def __init__(self, rules: Iterable[PolicyRule]) -> None:
        self._by_resource: dict[str, _Rules] = {}
        self._by_url: dict[str, _Rules] = {}
        self._by_prefix: dict[str, _Rules] = {}
        self.rules: list[IndexedRule] = []
        for rule in rules:
            indexed = IndexedRule(rule)
            self.rules.append(indexed)
            for resource in rule.resources:
                _put(self._by_resource, resource, indexed)
            for url in rule.non_resource_urls:
                if url.endswith("*"):
                    _put(self._by_prefix, url.rstrip("*"), indexed)
                else:
                    _put(self._by_url, url, indexed)
        self._prefix_lengths = sorted({len(prefix) for prefix in self._by_prefix})

    def on_resource(self, verb: str, group: str, resource: str, pattern: str = "") -> Sequence[Names]:
        """Return the object names that matching rules are limited to, as a few sets; (None,) if a rule has no limit.

        `resource` is as in a rule: with a subresource it is "resource/subresource", and `pattern` is "*/subresource".
        """
        found: list[Names] = []
        for key in dict.fromkeys(("*", resource, pattern)) if pattern else dict.fromkeys(("*", resource)):
            found += self._found(self._by_resource, key, (verb, group))
        if None in found:
            return (None,)
        return found if len(found) <= _FEW else (_union(found),)

    def on_url(self, verb: str, url: str) -> Iterator[Names]:
        """Yield an item for each rule that allows `verb` for a URL; object names do not limit non-resource rules."""
        yield from self._found(self._by_url, url, (verb,))
        for length in self._prefix_lengths:
            if length > len(url):
                break
            yield from self._found(self._by_prefix, url[:length], (verb,))

    @staticmethod
    def _found(index: dict[str, _Rules], key: str, wanted: tuple[str, ...]) -> Iterator[Names]:
        rules = index.get(key)
        if rules is None:
            return
        if isinstance(rules, list):
            rules = index[key] = _Node(rules, 0)
        yield from rules.names(wanted)


class _Node:
    """Rules with a common prefix of (resource or URL, verb, group); the level is the next part to compare."""

    __slots__ = ("_below", "_effort", "_level", "_rules", "_scanned")

    def __init__(self, rules: list[IndexedRule], level: int) -> None:
        self._rules = rules
        self._level = level
        self._scanned = 0
        """Total number of rules that were scanned so far."""
        self._effort = sum(len(rule.sets[level] or "*") for rule in rules) if len(rules) > _FEW else 0
        """Number of steps to build the index of the next level."""
        self._below: dict[str | None, _Node] | list[Names] | None = None

    def names(self, wanted: tuple[str, ...]) -> Iterator[Names]:
        """Yield the object names of the rules that match `wanted`: a verb, or a verb and a group."""
        if self._below is None:
            self._scanned += len(self._rules)
            if len(self._rules) <= _FEW or self._scanned <= self._effort:
                return self._scan(wanted)
            self._below = self._split(wanted)
        below = self._below
        if isinstance(below, list):
            return iter(below)
        value = wanted[self._level]
        return chain.from_iterable(node.names(wanted) for key in (None, value) if (node := below.get(key)) is not None)

    def _scan(self, wanted: tuple[str, ...]) -> Iterator[Names]:
        levels = range(self._level, len(wanted))
        for rule in self._rules:
            sets = rule.sets
            if all((values := sets[level]) is None or wanted[level] in values for level in levels):
                yield sets[_NAMES]

    def _split(self, wanted: tuple[str, ...]) -> dict[str | None, _Node] | list[Names]:
        level = self._level
        if level == _NAMES:
            return [_union(rule.sets[_NAMES] for rule in self._rules)]
        below: dict[str | None, list[IndexedRule]] = {}
        for rule in self._rules:
            values = rule.sets[level]
            for value in (None,) if values is None else values:
                below.setdefault(value, []).append(rule)
        following = level + 1 if level + 1 < len(wanted) else _NAMES
        return {value: _Node(rules, following) for value, rules in below.items()}


_Rules = _Node | list[IndexedRule]


def _put(index: dict[str, _Rules], key: str, rule: IndexedRule) -> None:
    rules = index.setdefault(key, [])
    assert isinstance(rules, list)
    rules.append(rule)


def _union(several: Iterable[Names]) -> Names:
    """Return the union of sets of names; None if one of them is None."""
    found: set[str] = set()
    for names in several:
        if names is None:
            return None
        found |= names
    return frozenset(found)
