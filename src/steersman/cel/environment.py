"""The variables, functions, types and macros that expressions may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.cel import types
from steersman.cel.ast import Expr
from steersman.cel.declared import DeclaredType
from steersman.cel.macros import Macro, MacroKey
from steersman.cel.names import RESERVED
from steersman.cel.sizes import CallEstimate, CostNode, Estimator
from steersman.cel.types import Kind, Type

CallCost = Callable[[list[Any], Any], int]
"""Returns the cost of a call from its arguments, with the target first, and its result."""
EstimateCost = Callable[[Estimator, CostNode | None, list[CostNode]], CallEstimate | None]
"""Returns the estimated cost of a call from its target and its arguments, None to use the general rules."""


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One signature of a function. For a member function, the first of `args` is the target.

    `call` takes the arguments as values, and returns a value or raises `EvaluationError`; it is None for functions that
    the evaluator implements itself. `estimate` and `cost` take precedence over the environment's own rules.
    """

    id: str
    args: tuple[Type, ...]
    result: Type
    call: Callable[..., Any] | None = None
    member: bool = False
    estimate: EstimateCost | None = None
    cost: CallCost | None = None
    checks_arguments: bool = True
    """True if arguments whose types are only known at run time are checked against the signature."""
    parameters: tuple[Type, ...] = field(init=False)
    """The type parameters of the signature."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(_parameters((*self.args, self.result))))


def _parameters(signature: Iterable[Type]) -> dict[Type, None]:
    parameters: dict[Type, None] = {}
    for each in signature:
        if each.kind is Kind.TYPE_PARAM:
            parameters[each] = None
        parameters.update(_parameters(each.params))
    return parameters


Functions = Mapping[str, tuple[Overload, ...]]
"""Overloads by the name of their function, in the order in which they are tried."""

Validator = Callable[[list[Expr], Callable[[int, str], None]], None]
"""Looks for further errors in an expression without type errors, in its nodes from the top."""


@dataclass(frozen=True, slots=True)
class Library:
    """A set of functions, macros, type names and validators."""

    functions: Functions = field(default_factory=dict)
    macros: Mapping[MacroKey, Macro] = field(default_factory=dict)
    types: tuple[Type, ...] = ()
    validators: tuple[Validator, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constructed:
    """A type whose objects expressions can create. `field_type` returns the type of a field, None if there is no such
    field. `make` creates the value from the fields, and may raise EvaluationError.
    """

    type: Type
    field_type: Callable[[str], Type | None]
    make: Callable[[dict[str, Any]], Any]


Constructors = Callable[[str], Constructed | None]
"""Finds such a type by its name."""


class Environment:
    """Libraries and variables, which are merged once and then used for many expressions."""

    def __init__(
        self,
        libraries: Iterable[Library],
        variables: Mapping[str, Type | DeclaredType] | None = None,
    ) -> None:
        self.functions: Final[dict[str, tuple[Overload, ...]]] = {}
        self.macros: Final[dict[MacroKey, Macro]] = {}
        self.variables: Final[dict[str, Type]] = {}
        self.declared: Final[dict[str, DeclaredType]] = {}
        """Variables with declared limits in addition to the type."""
        self.type_names: Final[dict[str, Type]] = {}
        self.objects: Final[dict[str, DeclaredType]] = {}
        """Types with fields, by their names."""
        self.validators: Final[list[Validator]] = []
        self.constructors: Final[Constructors | None] = None
        """Finds types with fields that are not declared but derived from their names."""
        for library in libraries:
            for name, overloads in library.functions.items():
                self.functions[name] = (*self.functions.get(name, ()), *overloads)
            self.macros.update(library.macros)
            self.type_names.update((type.name, type) for type in library.types)
            self.validators.extend(library.validators)
        for name, variable in (variables or {}).items():
            self._add_variable(name, variable)
        if self.objects:
            # As upstream, two types of the language also have a short name where types are declared.
            self.type_names.update(duration=types.DURATION, timestamp=types.TIMESTAMP)
        self.overloads: Final = {each.id: each for overloads in self.functions.values() for each in overloads}

    def _add_variable(self, name: str, variable: Type | DeclaredType) -> None:
        if isinstance(variable, Type):
            self.variables[name] = variable
            return
        self.variables[name] = variable.type
        self.declared[name] = variable
        for each in variable.objects():
            self.objects[each.type.name] = each

    def extended(self, variables: Mapping[str, Type | DeclaredType], libraries: Iterable[Library] = ()) -> Environment:
        """Return an environment with further variables and libraries."""
        own = Library(self.functions, self.macros, tuple(self.type_names.values()), tuple(self.validators))
        return Environment((own, *libraries), {**self.variables, **self.declared, **variables})

    def about(self, variables: Mapping[str, Type], objects: Mapping[str, DeclaredType]) -> Environment:
        """Return an environment with other variables, whose types with fields are all in `objects`. Nothing is merged
        or searched, so an environment can be created for each of many positions of a large schema.
        """
        other = copy(self)
        vars(other).update(
            variables={**self.variables, **variables},
            objects=objects,
            type_names={**self.type_names, "duration": types.DURATION, "timestamp": types.TIMESTAMP},
        )
        return other

    def constructing(self, constructors: Constructors, library: Library) -> Environment:
        """Return an environment with types whose objects can be created, and the functions that belong to them."""
        other = copy(self)
        functions = {**self.functions, **library.functions}
        vars(other).update(
            constructors=constructors,
            functions=functions,
            overloads={**self.overloads, **{each.id: each for some in library.functions.values() for each in some}},
        )
        return other

    def constructed(self, name: str) -> Constructed | None:
        """Return the type of this name whose objects can be created; None if there is none."""
        return None if self.constructors is None else self.constructors(name)

    def is_object(self, type_name: str) -> bool:
        """Return True for the name of a type with fields."""
        return type_name in self.objects or self.constructed(type_name) is not None

    def name(self, name: str) -> tuple[str, Type, Type | None] | None:
        """Return the meaning of a name: its full form, its type and, for the name of a type, that type."""
        if name.startswith("."):
            name = name[1:]
        variable = self.variables.get(name)
        if variable is not None:
            return name, variable, None
        denoted: Type | None
        made = self.constructed(name)
        if made is not None:
            denoted = made.type
        elif name in self.objects:
            denoted = self.objects[name].type
        else:
            denoted = self.type_names.get(name)
        return None if denoted is None else (name, types.type_of(denoted), denoted)

    def function(self, name: str) -> tuple[str, tuple[Overload, ...]] | None:
        """Return a function's full name and its overloads."""
        if name.startswith("."):
            name = name[1:]
        overloads = self.functions.get(name)
        return None if overloads is None else (name, overloads)

    def field_type(self, type_name: str, name: str) -> Type | None:
        """Return the type of a field of an object type; None if it has no such field."""
        made = self.constructed(type_name)
        if made is not None:
            return made.field_type(name)
        declared = self.objects.get(type_name)
        if declared is None or declared.fields is None:
            return None
        found = declared.fields.get(name)
        if found is None and name in RESERVED:
            found = declared.fields.get(f"__{name}__")
        return None if found is None else found.type
