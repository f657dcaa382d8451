"""The syntax tree of a CEL expression after the expansion of macros.

Every node has the offset of its first character, in code points, for error messages. The checker sets `type`, and for
calls also the IDs of the overloads that may apply.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from steersman.cel.types import ERROR, Type

NO_OFFSET: Final = -1
"""The offset of nodes that are not in the text."""

UNREAD_OFFSET: Final = -2
"""The offset of an operand that could not be parsed: before the first column of the text."""

ACCUMULATOR: Final = "@result"
"""The variable with the intermediate result of a comprehension; no text can name it."""
UNUSED_VARIABLE: Final = "#unused"
"""The iteration variable of a comprehension over an empty list, which implements `cel.bind`."""


class Operator:
    """Names of the functions that implement operators."""

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


OF_VALUES: Final = frozenset(
    {
        *(Operator.NOT, Operator.NOT_EQUALS, Operator.LESS, Operator.LESS_EQUALS, Operator.GREATER),
        *(Operator.GREATER_EQUALS, Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE),
        *(Operator.MODULO, Operator.NEGATE, Operator.IN),
    }
)
"""Operators that compute a value from the values of all their operands, apart from `==`."""


@dataclass(slots=True, eq=False)
class Expr:
    """The base class of nodes."""

    offset: int
    type: Type = dataclasses.field(default=ERROR, init=False)
    overloads: tuple[str, ...] = dataclasses.field(default=(), init=False)


@dataclass(slots=True, eq=False)
class Unspecified(Expr):
    """A placeholder for a part that could not be parsed; an error has been reported."""


@dataclass(slots=True, eq=False)
class Literal(Expr):
    """A constant: bool, int, UInt, float, str, bytes or None."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(Expr):
    """A name. After checking, it is the full name of the declaration that was found."""

    name: str
    constant: Type | None = dataclasses.field(default=None, init=False)
    """The type that the name denotes, if it denotes one."""


@dataclass(slots=True, eq=False)
class Select(Expr):
    """The selection `operand.field`, or the test for a field with `test_only`: `has(operand.field)`."""

    operand: Expr
    field: str
    test_only: bool = False
    resolved: Ident | None = dataclasses.field(default=None, init=False)
    """The variable or type that has the whole selection as its name, if there is one; then nothing is selected."""


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A call of a function, with a target if it was written `target.function(args)`."""

    function: str
    target: Expr | None
    args: list[Expr]


@dataclass(slots=True, eq=False)
class CreateList(Expr):
    """A list `[elements]`; the elements whose indices are in `optional` are optional values."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """An entry `key: value` of a map."""

    offset: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(slots=True, eq=False)
class CreateMap(Expr):
    """A map `{entries}`."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class FieldInit:
    """An entry `name: value` of an object."""

    offset: int
    name: str
    value: Expr
    optional: bool = False


@dataclass(slots=True, eq=False)
class CreateStruct(Expr):
    """An object `type_name{fields}`."""

    type_name: str
    fields: list[FieldInit]


@dataclass(slots=True, eq=False)
class Comprehension(Expr):
    """A loop, to which macros such as `all` and `map` are expanded.

    `accumulator` starts with `init`. For each element of `range`, while `condition` is true, it is set to `step`.
    Finally `result` is evaluated. With two variables, the first is the index or key, and the second is the value.
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
        """True if the comprehension only names a value and never loops."""
        return (
            isinstance(self.range, CreateList)
            and not self.range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
            and self.accumulator != "__result__"
        )


def children(node: Expr) -> Iterator[Expr]:
    """Yield the parts of a node, in the order in which they are visited."""
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
    """Yield the node and all nodes below it, each before its parts."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))


def qualified_name(node: Expr) -> str | None:
    """Return `a.b.c` if the node is a name or selections from one, and None otherwise."""
    parts = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


class TooLarge(Exception):
    """Macros would create a tree with more nodes than supported."""


MAX_COPIED: Final = 5_000
"""The most nodes that may be copied at once. Their number doubles for each level of nested macros."""


def copy_expr(node: Expr) -> Expr:
    """Return a copy of a node, for a macro that uses an argument twice. Raises TooLarge."""
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
