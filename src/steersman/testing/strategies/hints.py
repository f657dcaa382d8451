"""Hints of CEL rules for the repair of values: the fields that a rule is about, and the constants that it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from steersman.cel.ast import Call, Comprehension, Expr, Ident, Literal, Operator, Select, children
from steersman.cel.errors import Errors, Source
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.names import unescape
from steersman.cel.nesting import allows_nesting
from steersman.cel.parser import parse

EACH: Final = "*"
"""The step to each item or member."""
_MOST_PATHS: Final = 24
_MOST_CONSTANTS: Final = 24
_MOST_NODES: Final = 5_000
_LONGEST_KEPT: Final = 2048
"""Characters of the longest rule whose hints are cached."""

RulePath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Hints:
    """The paths below `self` that a rule reads, shortest last, and its constants."""

    paths: tuple[RulePath, ...]
    constants: tuple[Any, ...]


def hints_of(rule: str) -> Hints:
    """Return the hints of a rule; none for one that cannot be parsed."""
    return _hints_of(rule) if len(rule) <= _LONGEST_KEPT else _hints_of.__wrapped__(rule)


@lru_cache(maxsize=256)
def _hints_of(rule: str) -> Hints:
    errors = Errors(Source(rule))
    tree = _parsed(rule, errors)
    if errors:
        return Hints((), ())
    paths: dict[RulePath, None] = {}
    constants: dict[Any, None] = {}
    pending: list[tuple[Expr, dict[str, RulePath]]] = [(tree, {"self": ()})]
    for _ in range(_MOST_NODES):
        if not pending:
            break
        node, variables = pending.pop()
        if isinstance(node, Literal) and isinstance(node.value, str | int | float | bool):
            constants[node.value.__class__ is bool, node.value] = None
        path = _path_of(node, variables)
        if path is not None:
            paths[path] = None
            continue
        pending += reversed(list(_below(node, variables)))
    known = sorted(paths, key=len, reverse=True)
    return Hints(tuple(known[:_MOST_PATHS]), tuple(value for _, value in list(constants)[:_MOST_CONSTANTS]))


@allows_nesting
def _parsed(rule: str, errors: Errors) -> Expr:
    return parse(rule, base_environment().macros, errors)


def _below(node: Expr, variables: dict[str, RulePath]) -> Iterator[tuple[Expr, dict[str, RulePath]]]:
    """Yield the parts of a node with the variables that they know."""
    if not isinstance(node, Comprehension):
        for each in children(node):
            yield each, variables
        return
    yield node.range, variables
    path = _path_of(node.range, variables)
    inner = dict(variables)
    if path is not None:
        inner[node.second_variable or node.variable] = (*path, EACH)
    for each in (node.init, node.condition, node.step, node.result):
        yield each, inner


def _path_of(node: Expr, variables: dict[str, RulePath]) -> RulePath | None:
    """Return the path that a node selects, None if it is no selection from `self`."""
    steps: list[str | int] = []
    while True:
        match node:
            case Ident(name=name):
                start = variables.get(name)
                return None if start is None else (*start, *reversed(steps))
            case Select(operand=operand, field=field):
                steps.append(unescape(field) or field)
                node = operand
            case Call(function=Operator.INDEX | Operator.OPTIONAL_INDEX | Operator.OPTIONAL_SELECT, args=[on, at]):
                steps.append(at.value if isinstance(at, Literal) and isinstance(at.value, str | int) else EACH)
                node = on
            case Call(function="orValue" | "value" | "hasValue", target=Expr() as on):
                node = on
            case _:
                return None
