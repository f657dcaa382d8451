"""Constraints on one value: the schema node of its position, with all nodes that apply to it besides.

A node of `allOf`, and a chosen node of `anyOf` or `oneOf`, has no values of its own; it narrows the node of the
position. Constraints join them, so that a value is made of all at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

from steersman.schema import Checks, Node

_MOST_CHOICES: Final = 16
"""Lists of alternatives that one value is chosen from; the others are left to the repair."""


class Constraints:
    """All nodes that apply to a value; the first is the node of the position."""

    def __init__(
        self, nodes: Iterable[Node], absent: frozenset[str] = frozenset(), resolved: frozenset[int] = frozenset()
    ) -> None:
        """`absent` are members that the value may not have, `resolved` the lists of nodes that were chosen from."""
        self.nodes: Final = tuple(_with_all_of(nodes))
        self.node: Final = self.nodes[0]
        self.checks: Final = tuple(each.checks for each in self.nodes if each.checks is not None)
        self.absent: Final = absent | _negated_members(self.checks)
        self._resolved: Final = resolved

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable of all that the constraints are made of."""
        return (tuple(map(id, self.nodes)), self.absent, self._resolved)

    @cached_property
    def choices(self) -> tuple[tuple[Node, ...], ...]:
        """Lists of nodes of which one each is to be chosen, apart from those that only repeat the types."""
        if len(self._resolved) >= _MOST_CHOICES:
            return ()
        found = []
        for checks in self.checks:
            for each in (checks.any_of, checks.one_of):
                if each and id(each) not in self._resolved and not all(map(_only_type, each)):
                    found.append(each)
        return tuple(found)

    def chosen(self, picks: Iterable[int]) -> Constraints:
        """Return the constraints after one node was picked of each of `choices`."""
        nodes, absent = list(self.nodes), set(self.absent)
        for branches, pick in zip(self.choices, picks, strict=True):
            nodes.append(branches[pick])
            if any(each.one_of is branches for each in self.checks):
                absent |= _members_of_others(branches, pick)
        required = {name for each in nodes if each.checks is not None for name in each.checks.required}
        return Constraints(nodes, frozenset(absent - required), self._resolved | set(map(id, self.choices)))

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Members that the value must have."""
        return tuple(dict.fromkeys(name for each in self.checks for name in each.required))

    @cached_property
    def enum(self) -> tuple[Any, ...] | None:
        """The values of all enumerations, None if there is none."""
        lists = [each.enum for each in self.checks if each.enum is not None]
        if not lists:
            return None
        excluded = [n.checks.enum for n in self._negated if n.checks is not None and n.checks.enum is not None]
        others = [[_hashable(value) for value in each] for each in lists[1:]]
        out = {_hashable(value) for each in excluded for value in each}
        return tuple(
            value
            for value in lists[0]
            if all(_hashable(value) in each for each in others) and _hashable(value) not in out
        )

    @property
    def _negated(self) -> tuple[Node, ...]:
        return tuple(each.negated for each in self.checks if each.negated is not None)

    def most(self, name: str) -> int | None:
        """Return the least of the upper limits of this name, None without one."""
        limits = [limit for each in self.checks if (limit := getattr(each, name)) is not None]
        return min(limits) if limits else None

    def least(self, name: str) -> int:
        """Return the largest of the lower limits of this name, 0 without one."""
        return max((limit for each in self.checks if (limit := getattr(each, name)) is not None), default=0)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of texts."""
        return tuple(dict.fromkeys(each.pattern for each in self.checks if each.pattern))

    @property
    def format(self) -> str:
        """The validated format, "" without one."""
        return next((each.format for each in self.nodes if each.format), "")

    def member(self, name: str) -> Constraints | None:
        """Return the constraints on a member, None if the value may have no such member."""
        found = [child for each in self.nodes if (child := each.child(name)) is not None]
        own = self.node.child(name)
        if own is None:
            return Constraints(found) if found and self.node.additional is True else None
        return Constraints(found)

    @cached_property
    def items(self) -> Constraints | None:
        """The constraints on items of a list."""
        if self.node.items is None:
            return None
        return Constraints([each.items for each in self.nodes if each.items is not None])

    @cached_property
    def values(self) -> Constraints | None:
        """The constraints on values of a map, None if the value is none."""
        if not isinstance(self.node.additional, Node):
            return None
        return Constraints([each.additional for each in self.nodes if isinstance(each.additional, Node)])


def _only_type(node: Node) -> bool:
    """Return True for a node of an int-or-string, which only says one of its types."""
    return node.checks is None and not node.properties and bool(node.types)


def _with_all_of(nodes: Iterable[Node]) -> Iterable[Node]:
    pending = list(reversed(list(nodes)))
    while pending:
        node = pending.pop()
        yield node
        if node.checks is not None and node.checks.all_of:
            pending += reversed(node.checks.all_of)


def _members_of_others(branches: tuple[Node, ...], pick: int) -> set[str]:
    """Return members that must be missing so that no other branch of a `oneOf` matches too."""
    own = branches[pick].checks
    required = set(own.required) if own is not None else set()
    found: set[str] = set()
    for number, each in enumerate(branches):
        if number != pick and each.checks is not None:
            found |= set([name for name in each.checks.required if name not in required][:1])
    return found


def _negated_members(checks: Iterable[Checks]) -> frozenset[str]:
    """Return members that a `not` with nothing but `required` forbids."""
    found: set[str] = set()
    for each in checks:
        for node in _alternatives(each.negated):
            if node.checks is not None and len(node.checks.required) == 1 and not node.properties:
                found.add(node.checks.required[0])
    return frozenset(found)


def _alternatives(negated: Node | None) -> tuple[Node, ...]:
    if negated is None:
        return ()
    checks = negated.checks
    return (negated,) if checks is None or not checks.any_of else checks.any_of


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, dict | list) else (value.__class__ is bool, value)
