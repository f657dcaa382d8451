"""Type checking of a ValidatingAdmissionPolicy's expressions against the schemas of the matched kinds.

Follows apiserver `admission/plugin/policy/validating` typechecking.go. Errors become warnings in the status of the
policy; they do not change its effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steersman.admission_rules import environments
from steersman.admission_rules.schema_types import SchemaOf, SchemaTypes
from steersman.admission_rules.variables import VARIABLES_TYPE, declared_variable_type
from steersman.api.admissionregistration.v1 import (
    ExpressionWarning,
    ValidatingAdmissionPolicySpec,
    Variable,
)
from steersman.cel import types
from steersman.cel.declared import DeclaredType, declared_object
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.expression import compile_expression
from steersman.cel.library.authorizer import AUTHORIZER
from steersman.cel.types import Type
from steersman.machinery.errors.field import Path
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.work.threads import give_way

_VALIDATIONS: Final = Path("spec", "validations")
MAX_CHECKED: Final = 4 << 20
"""Most bytes of expressions that are checked, counted once for every kind: about 20 s. Only the first kinds are
checked.

Upstream has no limit.
"""
_OF_OBJECTS: Final = 0
_OF_PARAMS: Final = 1
"""Number after the kind in the names of types; upstream uses the time."""


@dataclass(frozen=True, slots=True)
class TypedKind:
    """A kind and its schema; `reference` is the reference that the schema uses for itself."""

    gvk: GroupVersionKind
    schema: Mapping[str, Any]
    schema_of: SchemaOf
    reference: str = ""


class WarningsTooLarge(Exception):
    """The warnings are larger than any object may be."""

    def __init__(self) -> None:
        super().__init__("the warnings are larger than an object may be")


def check(
    spec: ValidatingAdmissionPolicySpec, kinds: Sequence[TypedKind], params: TypedKind | None, *, limit: int
) -> list[ExpressionWarning]:
    """Return the warnings in the order of the validations; each lists the errors for all kinds, in order.

    `params` is None if the kind of the parameters is unknown. A check takes some 200 us for an expression and a kind.
    Raises WarningsTooLarge for more than `limit` bytes.
    """
    expressions = list(_expressions(spec))
    size = sum(len(each.expression) for each in spec.variables) + sum(len(text) for _, text in expressions)
    checked = [(each.gvk, _environment(spec, each, params)) for each in kinds[: max(1, MAX_CHECKED // max(1, size))]]
    found: list[ExpressionWarning] = []
    for path, text in expressions:
        warnings, limit = _warning_about(text, checked, limit)
        if warnings:
            found.append(ExpressionWarning(field_ref=str(path), warning=warnings))
    return found


def _expressions(spec: ValidatingAdmissionPolicySpec) -> Iterator[tuple[Path, str]]:
    """Yield the paths and texts of the checked expressions."""
    for index, each in enumerate(spec.validations):
        yield _VALIDATIONS[index] / "expression", each.expression
        if each.message_expression:
            yield _VALIDATIONS[index] / "messageExpression", each.message_expression


def _warning_about(text: str, checked: Sequence[tuple[GroupVersionKind, Environment]], limit: int) -> tuple[str, int]:
    """Return the warning about an expression ("" for none), and the bytes left for others. Raises WarningsTooLarge."""
    warnings = []
    for gvk, environment in checked:
        give_way()
        try:
            compile_expression(text, environment)
        except CompileError as error:
            warnings.append(f"{gvk}: {error}\n")
            limit -= len(warnings[-1].encode())
            if limit < 0:
                raise WarningsTooLarge from None
    return "\n".join(warnings), limit


def _environment(spec: ValidatingAdmissionPolicySpec, kind: TypedKind, params: TypedKind | None) -> Environment:
    """Return the environment for objects of one kind. As upstream, the authorizer has no `requestResource`."""
    base = environments.environment(params=False, authorizer=False)
    declarations: dict[str, DeclaredType] = {}
    named = declared_object(VARIABLES_TYPE, declarations)
    objects = {**base.objects, VARIABLES_TYPE: named}
    of_object = _type(kind, _OF_OBJECTS, objects)
    variables = {
        environments.OBJECT: of_object,
        environments.OLD_OBJECT: of_object,
        environments.AUTHORIZER_NAME: AUTHORIZER,
        environments.VARIABLES: named.type,
    }
    if spec.param_kind is not None:
        variables[environments.PARAMS] = types.DYN if params is None else _type(params, _OF_PARAMS, objects)
    extended = base.about(variables, objects)
    _declare(spec.variables, declarations, extended)
    return extended


def _type(kind: TypedKind, number: int, objects: dict[str, DeclaredType]) -> Type:
    found = SchemaTypes(kind.schema_of, objects).root(kind.schema, f"{kind.gvk.kind}{number}", kind.reference)
    return types.DYN if found is None else found.type


def _declare(variables: Iterable[Variable], declarations: dict[str, DeclaredType], environment: Environment) -> None:
    """Add the types of the variables, which may refer to earlier variables. A variable with an error is dynamic."""
    for each in variables:
        give_way()
        try:
            compiled = compile_expression(each.expression, environment)
        except CompileError:
            declarations[each.name] = DeclaredType(types.DYN)
        else:
            declarations[each.name] = DeclaredType(declared_variable_type(compiled.type))
