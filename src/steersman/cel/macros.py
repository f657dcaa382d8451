"""Macros: calls that are expanded to other expressions (CEL language definition, "Macros")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from steersman.cel.ast import (
    ACCUMULATOR,
    UNUSED_VARIABLE,
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    Expr,
    Ident,
    Literal,
    Operator,
    Select,
)

MacroKey = tuple[str, int, bool]
"""The name, the number of arguments, and whether there is a target."""

Macro = Callable[[int, Expr | None, list[Expr]], Expr | None]
"""Returns the expansion of a call from its offset, target and arguments, None if it is an ordinary call after all."""


class MacroError(Exception):
    """The arguments do not fit the macro."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset: Final = offset
        self.message: Final = message


def expand(
    macros: Mapping[MacroKey, Macro], offset: int, function: str, target: Expr | None, arguments: list[Expr]
) -> Expr | None:
    """Return the expansion of a call, None if it is not a macro. Raises MacroError."""
    macro = macros.get((function, len(arguments), target is not None))
    return None if macro is None else macro(offset, target, arguments)


def _call(offset: int, function: str, *args: Expr) -> Expr:
    return Call(offset, function, None, list(args))


def _accumulated(offset: int) -> Expr:
    return Ident(offset, ACCUMULATOR)


def _has(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    selected = args[0]
    if not isinstance(selected, Select):
        raise MacroError(selected.offset, "invalid argument to has() macro")
    return Select(offset, selected.operand, selected.field, test_only=True)


_NO_NAME: Final = "argument must be a simple name"
_NO_IDENTIFIER: Final = "argument is not an identifier"
_OVERWRITES: Final = "iteration variable overwrites accumulator variable"


def variable_name(argument: Expr, wrong: str = _NO_NAME) -> str:
    """Return the name of an argument that is an identifier. Raises MacroError."""
    if not isinstance(argument, Ident):
        raise MacroError(argument.offset, wrong)
    return argument.name


def bind(offset: int, name: str, value: Expr, result: Expr) -> Expr:
    """Return an expression that computes `result` with `value` in the variable `name`."""
    nothing = CreateList(offset, [])
    return Comprehension(
        offset, nothing, UNUSED_VARIABLE, "", name, value, Literal(offset, False), Ident(offset, name), result
    )


def _iteration_variable(argument: Expr, wrong: str) -> str:
    name = variable_name(argument, wrong)
    if name in (ACCUMULATOR, "__result__"):
        raise MacroError(argument.offset, _OVERWRITES)
    return name


def _two_variables(first: Expr, second: Expr) -> tuple[str, str]:
    names = variable_name(first), variable_name(second)
    if names[0] == names[1]:
        raise MacroError(second.offset, f"duplicate variable name: {names[0]}")
    for name, argument in zip(names, (first, second), strict=True):
        if name in (ACCUMULATOR, "__result__"):
            raise MacroError(argument.offset, _OVERWRITES)
    return names


def _variables(args: list[Expr], count: int, wrong: str) -> tuple[str, str]:
    if count == 2:
        return _two_variables(args[0], args[1])
    return _iteration_variable(args[0], wrong), ""


def _loop(
    offset: int,
    target: Expr | None,
    variables: tuple[str, str],
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr | None = None,
) -> Expr:
    assert target is not None
    final = _accumulated(offset) if result is None else result
    return Comprehension(offset, target, *variables, ACCUMULATOR, init, condition, step, final)


def _all(count: int) -> Macro:
    def macro(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        variables = _variables(args, count, _NO_NAME)
        condition = _call(offset, Operator.NOT_STRICTLY_FALSE, _accumulated(offset))
        step = _call(offset, Operator.AND, _accumulated(offset), args[count])
        return _loop(offset, target, variables, Literal(offset, True), condition, step)

    return macro


def _exists(count: int) -> Macro:
    def macro(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        variables = _variables(args, count, _NO_NAME)
        negated = _call(offset, Operator.NOT, _accumulated(offset))
        condition = _call(offset, Operator.NOT_STRICTLY_FALSE, negated)
        step = _call(offset, Operator.OR, _accumulated(offset), args[count])
        return _loop(offset, target, variables, Literal(offset, False), condition, step)

    return macro


def _exists_one(count: int) -> Macro:
    def macro(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
        variables = _variables(args, count, _NO_NAME)
        counted = _call(offset, Operator.ADD, _accumulated(offset), Literal(offset, 1))
        step = _call(offset, Operator.CONDITIONAL, args[count], counted, _accumulated(offset))
        result = _call(offset, Operator.EQUALS, _accumulated(offset), Literal(offset, 1))
        return _loop(offset, target, variables, Literal(offset, 0), Literal(offset, True), step, result)

    return macro


def _gathered(
    offset: int, target: Expr | None, variables: tuple[str, str], init: Expr, condition: Expr | None, step: Expr
) -> Expr:
    """Return a loop that adds to a list or map, for elements that satisfy a condition."""
    if condition is not None:
        step = _call(offset, Operator.CONDITIONAL, condition, step, _accumulated(offset))
    return _loop(offset, target, variables, init, Literal(offset, True), step)


def _appended(offset: int, element: Expr) -> Expr:
    return _call(offset, Operator.ADD, _accumulated(offset), CreateList(offset, [element]))


def make_map(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    """Return `target.map(x, transform)`, which may have a condition before the transformation."""
    variables = _iteration_variable(args[0], _NO_IDENTIFIER), ""
    condition = args[1] if len(args) == 3 else None
    return _gathered(offset, target, variables, CreateList(offset, []), condition, _appended(offset, args[-1]))


def _filter(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    variables = _iteration_variable(args[0], _NO_IDENTIFIER), ""
    return _gathered(offset, target, variables, CreateList(offset, []), args[1], _appended(offset, args[0]))


def _transform_list(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    variables = _two_variables(args[0], args[1])
    condition = args[2] if len(args) == 4 else None
    return _gathered(offset, target, variables, CreateList(offset, []), condition, _appended(offset, args[-1]))


MAP_INSERT: Final = "cel.@mapInsert"
"""The function that adds entries to the map of a loop."""


def _transform_map(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    variables = _two_variables(args[0], args[1])
    condition = args[2] if len(args) == 4 else None
    step = _call(offset, MAP_INSERT, _accumulated(offset), Ident(offset, variables[0]), args[-1])
    return _gathered(offset, target, variables, CreateMap(offset, []), condition, step)


def _transform_map_entry(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    variables = _two_variables(args[0], args[1])
    condition = args[2] if len(args) == 4 else None
    step = _call(offset, MAP_INSERT, _accumulated(offset), args[-1])
    return _gathered(offset, target, variables, CreateMap(offset, []), condition, step)


STANDARD_MACROS: Final[Mapping[MacroKey, Macro]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all(1),
    ("exists", 2, True): _exists(1),
    ("exists_one", 2, True): _exists_one(1),
    ("map", 2, True): make_map,
    ("map", 3, True): make_map,
    ("filter", 2, True): _filter,
}
"""The macros of the language."""

TWO_VARIABLE_MACROS: Final[Mapping[MacroKey, Macro]] = {
    ("all", 3, True): _all(2),
    ("exists", 3, True): _exists(2),
    ("existsOne", 3, True): _exists_one(2),
    ("exists_one", 3, True): _exists_one(2),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
}
"""Loops with the index or key in addition to the value (cel-go's extension "comprev2")."""
