"""The syntax tree of a CEL expression, after macros were expanded.

Every node has the offset of the character it starts at, in code points, which errors are reported at. The checker
fills in `type`, and for calls the identifiers of the overloads that can be meant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from steersman.cel.types import ERROR, Type

NO_OFFSET: Final = -1
"""The offset of what stands nowhere in the text."""

UNREAD_OFFSET: Final = -2
"""The offset of an operand that was not understood: before the first column of the text."""

ACCUMULATOR: Final = "@result"
"""The variable that holds what a comprehension has come to; no text can name it."""
UNUSED_VARIABLE: Final = "#unused"
"""The iteration variable of a comprehension over nothing, which is how `cel.bind` is expressed."""


class Operator:
    """Names of the functions that operators stand for."""

    CONDITIONAL: Final = "_?_:_"
    AND: Final = "_&&_"
    OR: Final = "_||_"
    NOT: Final = "!_"
    EQUALS: Final = "_==_"
    NOT_EQUALS: Final = "_!=_"
    LESS: Final = "_<_"
    LESS_EQUALS: Final = "_<=_"
    GREATER: Final = "_>_"
    GREATER_EQUALS: Final = "_>=_"
    ADD: Final = "_+_"
    SUBTRACT: Final = "_-_"
    MULTIPLY: Final = "_*_"
    DIVIDE: Final = "_/_"
    MODULO: Final = "_%_"
    NEGATE: Final = "-_"
    INDEX: Final = "_[_]"
    OPTIONAL_INDEX: Final = "_[?_]"
    OPTIONAL_SELECT: Final = "_?._"
    IN: Final = "@in"
    NOT_STRICTLY_FALSE: Final = "@not_strictly_false"


@dataclass(slots=True, eq=False)
class Expr:
    """Any node."""

    offset: int
    type: Type = dataclasses.field(default=ERROR, init=False)
    overloads: tuple[str, ...] = dataclasses.field(default=(), init=False)


@dataclass(slots=True, eq=False)
class Unspecified(Expr):
    """What stands in for something that could not be read; an error was reported."""


@dataclass(slots=True, eq=False)
class Literal(Expr):
    """A constant: bool, int, UInt, float, str, bytes or None."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(Expr):
    """A name. After checking, the full name of what was found."""

    name: str
    constant: Type | None = dataclasses.field(default=None, init=False)
    """The type the name denotes, if it denotes one."""


@dataclass(slots=True, eq=False)
class Select(Expr):
    """`operand.field`, or with `test_only` whether there is such a field: `has(operand.field)`."""

    operand: Expr
    field: str
    test_only: bool = False
    resolved: Ident | None = dataclasses.field(default=None, init=False)
    """The variable or type with the whole as its name, if there is one: then nothing is selected."""


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A call of a function, with a target if it was written `target.function(args)`."""

    function: str
    target: Expr | None
    args: list[Expr]


@dataclass(slots=True, eq=False)
class CreateList(Expr):
    """`[elements]`; those whose indices are in `optional` are optional values."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """`key: value` of a map."""

    offset: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(slots=True, eq=False)
class CreateMap(Expr):
    """`{entries}`."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class FieldInit:
    """`name: value` of an object."""

    offset: int
    name: str
    value: Expr
    optional: bool = False


@dataclass(slots=True, eq=False)
class CreateStruct(Expr):
    """`type_name{fields}`."""

    type_name: str
    fields: list[FieldInit]


@dataclass(slots=True, eq=False)
class Comprehension(Expr):
    """A loop: what macros such as `all` and `map` become.

    `accumulator` starts as `init`; for each element of `range`, while `condition` holds, it becomes `step`; at the end
    `result` is evaluated. With two variables the first is index or key, the second the value.
    """

    range: Expr
    variable: str
    second_variable: str
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr

    @property
    def is_bind(self) -> bool:
        """Whether it only gives a name to a value, and never loops."""
        return (
            isinstance(self.range, CreateList)
            and not self.range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
            and self.accumulator != "__result__"
        )


def children(node: Expr) -> Iterator[Expr]:
    """The parts of a node, in the order in which they are visited."""
    match node:
        case Select():
            if node.resolved is None:
                yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case CreateList():
            yield from node.elements
        case CreateMap():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case CreateStruct():
            for init in node.fields:
                yield init.value
        case Comprehension():
            yield node.range
            yield node.init
            yield node.condition
            yield node.step
            yield node.result
        case _:
            pass


def descendants(root: Expr) -> Iterator[Expr]:
    """The node and all below it, each before its parts."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))


def qualified_name(node: Expr) -> str | None:
    """`a.b.c`, if the node is a name or selections from one; None for anything else."""
    parts = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


class TooLarge(Exception):
    """Macros would make a tree of more nodes than are handled."""


MAX_COPIED: Final = 5_000
"""Nodes that may be copied at once. A macro within a macro within a macro doubles them each time."""


def copy_expr(node: Expr) -> Expr:
    """The same once more, for a macro that uses an argument twice. Raises TooLarge."""
    for count, _ in enumerate(descendants(node)):
        if count >= MAX_COPIED:
            raise TooLarge
    return _copied(node)


def _copied(node: Expr) -> Expr:
    match node:
        case Literal():
            return Literal(node.offset, node.value)
        case Ident():
            return Ident(node.offset, node.name)
        case Select():
            return Select(node.offset, _copied(node.operand), node.field, node.test_only)
        case Call():
            target = None if node.target is None else _copied(node.target)
            return Call(node.offset, node.function, target, [_copied(arg) for arg in node.args])
        case CreateList():
            return CreateList(node.offset, [_copied(element) for element in node.elements], node.optional)
        case CreateMap():
            return CreateMap(
                node.offset,
                [Entry(each.offset, _copied(each.key), _copied(each.value), each.optional) for each in node.entries],
            )
        case CreateStruct():
            return CreateStruct(
                node.offset,
                node.type_name,
                [FieldInit(each.offset, each.name, _copied(each.value), each.optional) for each in node.fields],
            )
        case Comprehension():
            return Comprehension(
                node.offset,
                _copied(node.range),
                node.variable,
                node.second_variable,
                node.accumulator,
                _copied(node.init),
                _copied(node.condition),
                _copied(node.step),
                _copied(node.result),
            )
        case _:
            return Unspecified(node.offset)
