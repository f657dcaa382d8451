"""What expressions may use: variables, functions, types and macros, and how an expression is compiled against them."""

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
"""What a call has cost, by its arguments (a target first) and its result."""
EstimateCost = Callable[[Estimator, CostNode | None, list[CostNode]], CallEstimate | None]
"""What a call may cost, by its target and its arguments; None leaves it to the general rules."""


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One signature of a function. The first of `args` is the target if it is called on one.

    `call` takes the arguments as values and returns a value or raises `EvaluationError`; None for what the evaluator
    does itself. `estimate` and `cost` come before the environment's own rules.
    """

    id: str
    args: tuple[Type, ...]
    result: Type
    call: Callable[..., Any] | None = None
    member: bool = False
    estimate: EstimateCost | None = None
    cost: CallCost | None = None
    checks_arguments: bool = True
    """Whether arguments whose types are only known as they come are held against the signature."""
    parameters: tuple[Type, ...] = field(init=False)
    """The type parameters of the signature."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(_parameters((*self.args, self.result))))


def _parameters(signature: Iterable[Type]) -> dict[Type, None]:
    found: dict[Type, None] = {}
    for each in signature:
        if each.kind is Kind.TYPE_PARAM:
            found[each] = None
        found.update(_parameters(each.params))
    return found


Functions = Mapping[str, tuple[Overload, ...]]
"""Overloads by the name of their function, in the order in which they are tried."""

Validator = Callable[[list[Expr], Callable[[int, str], None]], None]
"""Looks for more errors in an expression whose types agree: in its nodes, from the top."""


@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros, names of types and validators that belong together."""

    functions: Functions = field(default_factory=dict)
    macros: Mapping[MacroKey, Macro] = field(default_factory=dict)
    types: tuple[Type, ...] = ()
    validators: tuple[Validator, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constructed:
    """A type that expressions can make objects of: the types of its fields by their names, None of those that it has
    not, and what makes a value of fields, which may raise EvaluationError."""

    type: Type
    field_type: Callable[[str], Type | None]
    make: Callable[[dict[str, Any]], Any]


Constructors = Callable[[str], Constructed | None]
"""Finds such types by their names."""


class Environment:
    """Libraries and variables, merged once and then used for many expressions."""

    def __init__(
        self,
        libraries: Iterable[Library],
        variables: Mapping[str, Type | DeclaredType] | None = None,
    ) -> None:
        self.functions: Final[dict[str, tuple[Overload, ...]]] = {}
        self.macros: Final[dict[MacroKey, Macro]] = {}
        self.variables: Final[dict[str, Type]] = {}
        self.declared: Final[dict[str, DeclaredType]] = {}
        """Variables of which more is declared than the type."""
        self.type_names: Final[dict[str, Type]] = {}
        self.objects: Final[dict[str, DeclaredType]] = {}
        """Types with fields, by their names."""
        self.validators: Final[list[Validator]] = []
        self.constructors: Final[Constructors | None] = None
        """Finds types with fields that are not declared but made up by their names."""
        for library in libraries:
            for name, overloads in library.functions.items():
                self.functions[name] = (*self.functions.get(name, ()), *overloads)
            self.macros.update(library.macros)
            self.type_names.update((type.name, type) for type in library.types)
            self.validators.extend(library.validators)
        for name, variable in (variables or {}).items():
            self._add_variable(name, variable)
        if self.objects:
            # As upstream: where types are declared, two of the language's have a short name, too.
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
        """The same with more variables and libraries."""
        own = Library(self.functions, self.macros, tuple(self.type_names.values()), tuple(self.validators))
        return Environment((own, *libraries), {**self.variables, **self.declared, **variables})

    def about(self, variables: Mapping[str, Type], objects: Mapping[str, DeclaredType]) -> Environment:
        """The same with other variables, whose types with fields are all in `objects`: nothing is merged or looked
        through, so that one may be made for each of many places in a large schema."""
        other = copy(self)
        vars(other).update(
            variables={**self.variables, **variables},
            objects=objects,
            type_names={**self.type_names, "duration": types.DURATION, "timestamp": types.TIMESTAMP},
        )
        return other

    def constructing(self, constructors: Constructors, library: Library) -> Environment:
        """The same with types that objects can be made of, and the functions that belong to them."""
        other = copy(self)
        functions = {**self.functions, **library.functions}
        vars(other).update(
            constructors=constructors,
            functions=functions,
            overloads={**self.overloads, **{each.id: each for some in library.functions.values() for each in some}},
        )
        return other

    def constructed(self, name: str) -> Constructed | None:
        """The type of this name that objects can be made of; None if there is none."""
        return None if self.constructors is None else self.constructors(name)

    def is_object(self, type_name: str) -> bool:
        """Whether it is the name of a type with fields."""
        return type_name in self.objects or self.constructed(type_name) is not None

    def name(self, name: str) -> tuple[str, Type, Type | None] | None:
        """What a name stands for: its full form, its type and, for the name of a type, that type."""
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
        """A function's full name and its overloads."""
        if name.startswith("."):
            name = name[1:]
        overloads = self.functions.get(name)
        return None if overloads is None else (name, overloads)

    def field_type(self, type_name: str, name: str) -> Type | None:
        """The type of a field of an object type; None if it has no such field."""
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
