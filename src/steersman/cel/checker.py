"""Determining the types of the parts of an expression and the overloads of its calls (CEL language definition, "Gradual
Type Checking"). Messages are those of the reference implementation.
"""

from __future__ import annotations

from typing import Final

from steersman.cel import types
from steersman.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    Operator,
    Select,
    descendants,
    qualified_name,
)
from steersman.cel.environment import Environment, Overload
from steersman.cel.errors import Errors
from steersman.cel.types import Kind, Type, format_type, list_of, map_of, optional_of, type_param
from steersman.cel.unification import Bindings, join, substitute
from steersman.cel.values import type_of_value

MAX_TYPE_SIZE: Final = 5000
"""The most types of which the type of a literal may consist; upstream has no limit."""


def check(tree: Expr, environment: Environment, errors: Errors) -> list[Expr]:
    """Set the types of all nodes, and report mismatches to `errors`. Return the nodes, from the top."""
    checker = _Checker(environment, errors)
    checker.check(tree)
    bindings = checker.bindings
    nodes = list(descendants(tree))
    for node in nodes:
        if not node.type.is_concrete:
            node.type = substitute(bindings, node.type, unbound_to_dyn=True)
    return nodes


class _Checker:
    def __init__(self, environment: Environment, errors: Errors) -> None:
        self._environment: Final = environment
        self._errors: Final = errors
        self._scopes: Final[list[dict[str, Type]]] = []
        self._fresh = 0
        self.bindings = Bindings()

    def check(self, node: Expr) -> None:
        """Check a node after the nodes below it, and set its type."""
        match node:
            case Literal():
                node.type = type_of_value(node.value)
            case Ident():
                self._check_ident(node)
            case Select():
                self._check_select(node)
            case Call():
                self._check_call(node)
            case CreateList():
                self._check_list(node)
            case CreateMap():
                self._check_map(node)
            case CreateStruct():
                self._check_struct(node)
            case Comprehension():
                self._check_comprehension(node)

    def _lookup(self, name: str) -> tuple[str, Type, Type | None] | None:
        if not name.startswith("."):
            for scope in reversed(self._scopes):
                found = scope.get(name)
                if found is not None:
                    return name, found, None
        return self._environment.name(name)

    def _undeclared(self, node: Expr, name: str) -> None:
        node.type = types.ERROR
        self._errors.report(node.offset, f"undeclared reference to '{name}' (in container '')")

    def _check_ident(self, node: Ident) -> None:
        found = self._lookup(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        node.name, node.type, node.constant = found

    def _check_select(self, node: Select) -> None:
        name = qualified_name(node)
        found = None if name is None else self._lookup(name)
        if found is not None:
            variable = Ident(node.offset, found[0])
            variable.constant = found[2]
            node.type = variable.type = found[1]
            node.resolved = variable
            return
        selected = self._field(node, node.operand, node.field, optional=False)
        node.type = types.BOOL if node.test_only else substitute(self.bindings, selected)

    def _field(self, node: Expr, operand: Expr, name: str, *, optional: bool) -> Type:
        """Return the type of a field of `operand`."""
        self.check(operand)
        target = substitute(self.bindings, operand.type)
        if target.is_optional:
            target = target.params[0]
            optional = True
        result = types.ERROR
        match target.kind:
            case Kind.MAP:
                result = target.params[1]
            case Kind.STRUCT:
                result = self._object_field(node.offset, target.name, name)
            case Kind.TYPE_PARAM:
                self._is_assignable(types.DYN, target)
                result = types.DYN
            case Kind.DYN | Kind.ANY | Kind.ERROR:
                result = types.DYN
            case _:
                self._errors.report(node.offset, f"type '{format_type(target)}' does not support field selection")
                result = types.DYN
        return optional_of(result) if optional else result

    def _object_field(self, offset: int, type_name: str, name: str) -> Type:
        found = self._environment.field_type(type_name, name)
        if found is not None:
            return found
        if not self._environment.is_object(type_name):
            self._errors.report(offset, f"unexpected failed resolution of '{type_name}'")
        else:
            self._errors.report(offset, f"undefined field '{name}'")
        return types.ERROR

    def _check_call(self, node: Call) -> None:
        if node.function == Operator.OPTIONAL_SELECT and len(node.args) == 2:
            field = node.args[1]
            assert isinstance(field, Literal)
            field.type = types.STRING
            selected = self._field(node, node.args[0], field.value, optional=True)
            node.type = substitute(self.bindings, selected)
            node.overloads = ("select_optional_field",)
            return
        for argument in node.args:
            self.check(argument)
        target = node.target
        if target is not None:
            # a.b.c() is a call of the function a.b.c, or of c on a.b.
            prefix = qualified_name(target)
            found = None if prefix is None else self._environment.function(f"{prefix}.{node.function}")
            if found is not None:
                node.function, node.target = found[0], None
                self._resolve(node, found[1], None)
                return
            self.check(target)
        found = self._environment.function(node.function)
        if found is None:
            self._undeclared(node, node.function)
            return
        if target is None:
            node.function = found[0]
        self._resolve(node, found[1], target)

    def _resolve(self, node: Call, overloads: tuple[Overload, ...], target: Expr | None) -> None:
        arguments = node.args if target is None else [target, *node.args]
        given = [argument.type for argument in arguments]
        if node.function in (Operator.AND, Operator.OR):
            self._check_logic(node, overloads[0], given)
            return
        result: Type | None = None
        chosen: list[str] = []
        for overload in overloads:
            if overload.member is (target is None):
                continue
            if len(overload.args) != len(given) or not all(map(_may_be, given, overload.args)):
                # The numbers of type variables are those after an attempt with the signature.
                self._fresh += len(overload.parameters)
                continue
            wanted, returned = self._instantiate(overload)
            if not self._are_assignable(given, wanted):
                continue
            chosen.append(overload.id)
            returned = substitute(self.bindings, returned)
            if result is None:
                result = returned
            elif not result.is_dyn and returned != result:
                result = types.DYN
        if result is not None:
            node.type = result
            node.overloads = tuple(chosen)
            return
        shown = [format_type(substitute(self.bindings, each, unbound_to_dyn=True)) for each in given]
        signature = f"({', '.join(shown)})" if target is None else f"{shown[0]}.({', '.join(shown[1:])})"
        self._errors.report(node.offset, f"found no matching overload for '{node.function}' applied to '{signature}'")
        node.type = types.ERROR

    def _check_logic(self, node: Call, overload: Overload, given: list[Type]) -> None:
        node.type = types.BOOL
        for argument, type in zip(node.args, given, strict=True):
            if not self._is_assignable(type, types.BOOL):
                self._mismatch(argument, types.BOOL, type)
                node.type = types.ERROR
        node.overloads = (overload.id,)

    def _instantiate(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Return the signature with new type variables in place of its type parameters."""
        if not overload.parameters:
            return overload.args, overload.result
        fresh = Bindings()
        for parameter in overload.parameters:
            fresh.bind(parameter, self._new_variable())
        return tuple(substitute(fresh, each) for each in overload.args), substitute(fresh, overload.result)

    def _new_variable(self) -> Type:
        self._fresh += 1
        return type_param(f"_var{self._fresh - 1}")

    def _check_list(self, node: CreateList) -> None:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            self.check(each)
            type = self._unwrapped(each) if index in node.optional else each.type
            element = self._join(element, type)
        self._set_composed(node, list_of(self._new_variable() if element is None else element))

    def _unwrapped(self, node: Expr) -> Type:
        """Return the type of the value in an optional."""
        if node.type.is_optional:
            return node.type.params[0]
        if not node.type.is_dyn:
            self._mismatch(node, optional_of(node.type), node.type)
        return node.type

    def _check_map(self, node: CreateMap) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            self.check(entry.key)
            key = self._join(key, entry.key.type)
            self.check(entry.value)
            type = self._unwrapped(entry.value) if entry.optional else entry.value.type
            value = self._join(value, type)
        if key is None or value is None:
            key, value = self._new_variable(), self._new_variable()
        self._set_composed(node, map_of(key, value))

    def _set_composed(self, node: Expr, type: Type) -> None:
        """Set the type of a literal. A name for it can be used in larger literals, and so on, which doubles the size of
        the type each time.
        """
        node.type = type
        if type.size > MAX_TYPE_SIZE:
            self._errors.report(node.offset, "type is too large")
            node.type = types.ERROR

    def _check_struct(self, node: CreateStruct) -> None:
        found = self._lookup(node.type_name)
        if found is None:
            self._undeclared(node, node.type_name)
            return
        node.type_name = found[0]
        denoted = found[2]
        result = types.ERROR
        if denoted is None:
            if found[1].kind is not Kind.ERROR:
                self._errors.report(node.offset, f"'{found[1].name}' is not a type")
        elif denoted.kind is Kind.STRUCT:
            result = denoted
        else:
            self._errors.report(node.offset, f"'{denoted.name}' is not a message type")
        node.type = result
        for init in node.fields:
            self.check(init.value)
            wanted = self._object_field(init.offset, node.type_name, init.name)
            given = self._unwrapped(init.value) if init.optional else init.value.type
            if not self._is_assignable(wanted, given):
                self._errors.report(
                    init.offset,
                    f"expected type of field '{init.name}' is '{format_type(wanted)}' but provided type is "
                    f"'{format_type(given)}'",
                )

    def _check_comprehension(self, node: Comprehension) -> None:
        self.check(node.range)
        self.check(node.init)
        accumulated = node.init.type
        first, second = self._iterated(node)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append({node.variable: first})
        if node.second_variable:
            self._scopes[-1][node.second_variable] = second
        self.check(node.condition)
        self._assert_type(node.condition, types.BOOL)
        self.check(node.step)
        self._assert_type(node.step, accumulated)
        self._scopes.pop()
        self.check(node.result)
        self._scopes.pop()
        node.type = substitute(self.bindings, node.result.type)

    def _iterated(self, node: Comprehension) -> tuple[Type, Type]:
        """Return the types of a loop's variables."""
        over = substitute(self.bindings, node.range.type)
        match over.kind:
            case Kind.LIST:
                element = over.params[0]
                return (types.INT, element) if node.second_variable else (element, types.DYN)
            case Kind.MAP:
                return over.params[0], over.params[1]
            case Kind.DYN | Kind.ERROR | Kind.TYPE_PARAM:
                self._is_assignable(types.DYN, over)
                return types.DYN, types.DYN
            case _:
                self._errors.report(
                    node.range.offset,
                    f"expression of type '{format_type(over)}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)",
                )
                return types.ERROR, types.ERROR

    def _assert_type(self, node: Expr, wanted: Type) -> None:
        if not self._is_assignable(wanted, node.type):
            self._mismatch(node, wanted, node.type)

    def _mismatch(self, node: Expr, wanted: Type, found: Type) -> None:
        self._errors.report(node.offset, f"expected type '{format_type(wanted)}' but found '{format_type(found)}'")

    def _join(self, previous: Type | None, current: Type) -> Type:
        """Return the type of all elements of a literal after another one of type `current`."""
        if previous is None:
            return current
        return join(previous, current) if self._is_assignable(previous, current) else types.DYN

    def _is_assignable(self, left: Type, right: Type) -> bool:
        return self._are_assignable((left,), (right,))

    def _are_assignable(self, left: tuple[Type, ...] | list[Type], right: tuple[Type, ...]) -> bool:
        """Return True if the types match, and keep the resulting bindings of type variables in this case."""
        if all(each.is_concrete for each in left) and all(each.is_concrete for each in right):
            return self.bindings.are_assignable(left, right)
        tried = self.bindings.copy()
        if not tried.are_assignable(left, right):
            return False
        self.bindings = tried
        return True


_ANYTHING: Final = frozenset({Kind.DYN, Kind.ANY, Kind.ERROR, Kind.NULL, Kind.TYPE_PARAM})


def _may_be(given: Type, wanted: Type) -> bool:
    """Return False if the kinds and names of two types show that they cannot match."""
    if given.kind in _ANYTHING or wanted.kind in _ANYTHING:
        return True
    return given.kind is wanted.kind and given.name == wanted.name
