"""Checks of expressions without type errors: constants that would only fail during evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.cel import arithmetic
from steersman.cel.ast import Call, CreateList, CreateMap, Expr, Literal, children
from steersman.cel.environment import Validator
from steersman.cel.regular import PatternError, check_pattern
from steersman.cel.types import Kind, Type, format_type
from steersman.cel.values import EvaluationError

Report = Callable[[int, str], None]

FORMAT = "format"
"""The function whose lists may have values of several types."""


def _literal_validator(function: str, check: Callable[[Any], Any]) -> Validator:
    def validate(nodes: list[Expr], report: Report) -> None:
        """Report every literal argument of the function that the check refuses."""
        for node in nodes:
            if not isinstance(node, Call) or node.function != function or not node.args:
                continue
            argument = node.args[0]
            if not isinstance(argument, Literal):
                continue
            try:
                check(argument.value)
            except (EvaluationError, PatternError):
                report(argument.offset, f"invalid {function} argument")

    return validate


def _check_pattern(value: Any) -> None:
    if isinstance(value, str):
        check_pattern(value)


validate_durations = _literal_validator("duration", arithmetic.convert_duration)
validate_timestamps = _literal_validator("timestamp", arithmetic.convert_timestamp)
validate_patterns = _literal_validator("matches", _check_pattern)


def validate_homogeneous_literals(nodes: list[Expr], report: Report) -> None:
    """Check that the elements of each list, and the keys and the values of each map, have the same type, except in
    arguments of `format`.
    """
    if not any(isinstance(node, CreateList | CreateMap) for node in nodes):
        return

    def mismatch(node: Expr, wanted: Type, found: Type) -> None:
        report(node.offset, f"expected type '{format_type(wanted)}' but found '{format_type(found)}'")

    checked = _outside_format(nodes[0])
    for node in checked:
        if isinstance(node, CreateList):
            first: Type | None = None
            for index, element in enumerate(node.elements):
                type = element.type.params[0] if index in node.optional else element.type
                if first is None:
                    first = type
                elif not _equivalent(first, type):
                    mismatch(element, first, type)
                    break
    for node in checked:
        if isinstance(node, CreateMap):
            key: Type | None = None
            value: Type | None = None
            for entry in node.entries:
                key_type = entry.key.type
                value_type = entry.value.type.params[0] if entry.optional else entry.value.type
                if key is None or value is None:
                    key, value = key_type, value_type
                    continue
                if not _equivalent(key, key_type):
                    mismatch(entry.key, key, key_type)
                if not _equivalent(value, value_type):
                    mismatch(entry.value, value, value_type)


def _outside_format(tree: Expr) -> list[Expr]:
    """Return all nodes that are not below a call of `format`, each before its parts."""
    found: list[Expr] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        if not (isinstance(node, Call) and node.function == FORMAT):
            pending.extend(reversed(list(children(node))))
    return found


def _equivalent(first: Type, second: Type) -> bool:
    """Return True if two types are the same, ignoring the names of type parameters."""
    if first.kind is not second.kind or len(first.params) != len(second.params):
        return False
    if first.kind is not Kind.TYPE_PARAM and first.name != second.name:
        return False
    return all(map(_equivalent, first.params, second.params))
