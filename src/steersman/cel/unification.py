"""Matching of types, and the resulting bindings of type variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.cel import types
from steersman.cel.types import Kind, Type

_NULLABLE: Final = frozenset({Kind.OPAQUE, Kind.STRUCT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP, Kind.NULL, Kind.DYN})
"""The kinds of types that accept null."""
_COMPOSED: Final = frozenset({Kind.OPAQUE, Kind.LIST, Kind.MAP})


class Bindings:
    """Type variables and the types that are bound to them."""

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self._bound: Final[dict[Type, Type]] = {} if bound is None else bound

    def copy(self) -> Bindings:
        """Return a copy, for an attempt."""
        return Bindings(dict(self._bound))

    def bind(self, variable: Type, type: Type) -> None:
        """Bind a variable to a type."""
        self._bound[variable] = type

    def find(self, variable: Type) -> Type | None:
        """Return the type that is bound to a variable, if there is one."""
        return self._bound.get(variable)

    def are_assignable(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        """Return True if each type on the left matches the one on the right; binds variables in the process."""
        return len(left) == len(right) and all(map(self.is_assignable, left, right))

    def is_assignable(self, left: Type, right: Type) -> bool:
        """Return True if two types match; binds variables in the process, even if the types do not match."""
        if left is right and left.is_concrete:
            return True
        if right.kind is Kind.TYPE_PARAM:
            agrees, was_bound = self._stands_for(left, right)
            if agrees or was_bound:
                return agrees
        if left.kind is Kind.TYPE_PARAM:
            return self._stands_for(right, left)[0]
        if _is_wild(left) or _is_wild(right):
            return True
        if left.kind is Kind.NULL:
            return right.kind in _NULLABLE
        if right.kind is Kind.NULL:
            return left.kind in _NULLABLE
        if left.kind is not right.kind:
            return False
        if left.kind is Kind.TYPE:
            return True
        if left.kind in _COMPOSED:
            return left.name == right.name and self.are_assignable(left.params, right.params)
        return left.name == right.name

    def _stands_for(self, type: Type, variable: Type) -> tuple[bool, bool]:
        """Return whether the variable may be bound to the type, and whether it was bound before."""
        if type == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is None:
            if self._occurs(variable, type):
                return False, False
            self._bound[variable] = type
            return True, False
        if type == bound:
            return True, True
        if not self.is_assignable(type, bound):
            return False, True
        general = join(type, bound)
        if not self._occurs(variable, general):
            self._bound[variable] = general
        return True, True

    def _occurs(self, variable: Type, within: Type) -> bool:
        """Return True if a type contains the variable, directly or in bound types."""
        seen: set[Type] = set()
        pending = [within]
        while pending:
            type = pending.pop()
            if type is variable:
                return True
            if type.is_concrete or type in seen:
                continue
            seen.add(type)
            bound = self._bound.get(type)
            pending.extend(type.params if bound is None else (bound,))
        return False


def _is_wild(type: Type) -> bool:
    return type.kind is Kind.DYN or type.kind is Kind.ANY or type.kind is Kind.ERROR


def join(first: Type, second: Type) -> Type:
    """Return the more general of two matching types."""
    return first if _is_at_most_as_specific(first, second) else second


def _is_at_most_as_specific(first: Type, second: Type) -> bool:
    if first.is_dyn or first.kind is Kind.TYPE_PARAM:
        return True
    if second.is_dyn or second.kind is Kind.TYPE_PARAM or first.kind is not second.kind:
        return False
    if first.kind in _COMPOSED:
        return (
            first.name == second.name
            and len(first.params) == len(second.params)
            and all(map(_is_at_most_as_specific, first.params, second.params))
        )
    return first.kind is Kind.TYPE or first == second


def substitute(bindings: Bindings, type: Type, *, unbound_to_dyn: bool = False) -> Type:
    """Return the type with variables replaced by the types that are bound to them."""
    return type if type.is_concrete else _substituted(bindings, type, unbound_to_dyn, {})


def _substituted(bindings: Bindings, type: Type, unbound_to_dyn: bool, known: dict[Type, Type]) -> Type:
    if type.is_concrete:
        return type
    result = known.get(type)
    if result is None:
        if type.kind is Kind.TYPE_PARAM:
            bound = bindings.find(type)
            if bound is not None:
                result = _substituted(bindings, bound, unbound_to_dyn, known)
            else:
                result = types.DYN if unbound_to_dyn else type
        else:
            params = tuple(_substituted(bindings, param, unbound_to_dyn, known) for param in type.params)
            result = Type(type.kind, type.name, params)
        known[type] = result
    return result
