"""Expressions of a MutatingAdmissionPolicy, and their changes of an object (apiserver
`admission/plugin/policy/mutating`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.evaluation import BUDGET, Activation, Inputs, OutOfBudget
from steersman.admission_rules.expressions import CompiledExpression, compile_admission
from steersman.admission_rules.match_conditions import MatchConditions
from steersman.admission_rules.native import NoTextKey, native_fields
from steersman.admission_rules.variables import Variables
from steersman.api.admissionregistration.v1 import MutatingAdmissionPolicySpec
from steersman.cel import types
from steersman.cel.library.mutation import JSON_PATCH, OBJECT, JSONPatchValue, ObjectValue
from steersman.cel.moments import duration_text, timestamp_text
from steersman.cel.values import Duration, Optional, Timestamp, entries, is_map, type_of_value
from steersman.cel.work import counted_by, spend, spend_on_text
from steersman.machinery.large_work.sizes import too_many_values
from steersman.machinery.managed_fields import Schema
from steersman.machinery.managed_fields.merging import merge
from steersman.machinery.managed_fields.schema import Atom, ListType, MapType
from steersman.machinery.managed_fields.typed_error import TypedError
from steersman.machinery.managed_fields.typed_value import kind_of, validate
from steersman.machinery.patch import json_patch
from steersman.work.offloading import ensure_offloaded

APPLY: Final = (OBJECT,)
JSON_PATCHES: Final = (types.list_of(JSON_PATCH),)

_MAX_SAFE: Final = 2**53 - 1
"""Largest integer that protobuf's JSON has as a number. Larger ones are strings."""


class MutationError(Exception):
    """A mutation failed. The text is upstream's. The failure policy decides if the request is refused."""

    @property
    def error_type(self) -> str:
        """Return the error's name in metrics."""
        text = str(self)
        if text.startswith("compilation"):
            return "compile_error"
        if text.startswith("validation failed due to running out of cost budget"):
            return "out_of_budget"
        return "invalid_error"


_MAX_STEPS: Final = 400_000
"""Most steps of `cel.work` for a configuration, or for all operations of a patch: twice those of the largest object.

A value is two steps, and 64 characters are two steps.
"""
_MAX_STEPS_ON_LOOP: Final = 2_000


class _StepBudget:
    """Budget of steps for converting the value of an expression, which may contain the same list many times."""

    def __init__(self, answers: AuthorizerAnswers) -> None:
        self._left = _MAX_STEPS_ON_LOOP if answers.can_move_to_thread else _MAX_STEPS
        self._is_hurried: Final = answers.can_move_to_thread

    def work(self, steps: int) -> None:
        """Spend steps. Raises StatusError 413 if the budget is exceeded."""
        self._left -= steps
        self.afford(0)

    def afford(self, cost: int) -> None:
        """Raise StatusError 413 if fewer steps than `cost` are left. On the event loop, restart in a worker thread
        instead.
        """
        if cost > self._left:
            if self._is_hurried:
                ensure_offloaded()
            raise too_many_values()


Mutation = Callable[[Inputs, AuthorizerAnswers, Schema], Any]
"""Function that returns the changed object as plain data, without changing the object of the inputs.

The result may share parts with that object, and is the same object if a test operation of a patch fails. Raises
MutationError, StatusError 413 for an object that is too large, and Unanswered to stop the evaluation.
"""


class MutatingRules:
    """Compiled expressions of one policy. Compiling one takes several hundred microseconds."""

    def __init__(self, spec: MutatingAdmissionPolicySpec) -> None:
        variables = Variables(params=spec.param_kind is not None)
        variables.add_all(spec.variables)
        self._variables: Final = variables.expressions
        self.conditions: Final = MatchConditions(
            spec.match_conditions, failure_policy=spec.failure_policy, variables=variables
        )
        names = variables.environment(patches=True)
        self.mutations: Final[list[tuple[Mutation, bool]]] = []
        """Mutations in order, each with True if it is a JSON Patch."""
        for each in spec.mutations:
            if each.patch_type == "JSONPatch" and each.json_patch is not None:
                expression = compile_admission(each.json_patch.expression, names, JSON_PATCHES)
                self.mutations.append((self._patching(expression), True))
            elif each.patch_type == "ApplyConfiguration" and each.apply_configuration is not None:
                expression = compile_admission(each.apply_configuration.expression, names, APPLY)
                self.mutations.append((self._applying(expression), False))

    def _value(self, expression: CompiledExpression, inputs: Inputs, answers: AuthorizerAnswers) -> Any:
        if expression.error:
            raise MutationError(expression.error)
        try:
            evaluation = Activation(inputs, answers, BUDGET, self._variables).evaluate(expression)
        except OutOfBudget as error:
            raise MutationError(str(error)) from None
        if evaluation.error:
            raise MutationError(evaluation.error)
        return evaluation.value

    def _applying(self, expression: CompiledExpression) -> Mutation:
        def apply(inputs: Inputs, answers: AuthorizerAnswers, schema: Schema) -> Any:
            value = self._value(expression, inputs, answers)
            obj = inputs.object
            try:
                with counted_by(_StepBudget(answers)):
                    _check_fields(value)
                    fields = native_fields(value, inputs)
            except NoTextKey:
                raise MutationError("invalid return type: *dynamic.ObjectVal") from None
            configuration = {**fields, "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
            return _merge(schema, obj, configuration)

        return apply

    def _patching(self, expression: CompiledExpression) -> Mutation:
        def patch(inputs: Inputs, answers: AuthorizerAnswers, schema: Schema) -> Any:
            value = self._value(expression, inputs, answers)
            with counted_by(_StepBudget(answers)):
                operations = [_operation(each) for each in value]
            try:
                return json_patch.apply(inputs.object, operations)
            except json_patch.FailedTest:
                return inputs.object
            except json_patch.PatchError as error:
                raise MutationError(f"JSON Patch: {error}") from None

        return patch


def _check_fields(value: Any) -> None:
    wrong = value.misplaced() if isinstance(value, ObjectValue) else ()
    if wrong:
        raise MutationError("type mismatch: " + "\n".join(wrong))


def _merge(schema: Schema, obj: Any, configuration: Any) -> Any:
    """Return the object with the configuration merged into it, without changing the ownership of fields."""
    try:
        validate(schema.root, configuration)
    except (TypedError, RecursionError) as error:
        raise MutationError(f"error applying patch: failed to convert patch object to typed object: {error}") from None
    atomic = list(_atomic_parts(schema.root, configuration, ""))
    if atomic:
        raise MutationError(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            + ", ".join(atomic)
        )
    try:
        validate(schema.root, obj, allow_duplicates=True)
    except (TypedError, RecursionError) as error:
        raise MutationError(
            f"error applying patch: failed to convert original object to typed object: {error}"
        ) from None
    try:
        return merge(schema.root, obj, configuration)
    except (TypedError, RecursionError) as error:
        raise MutationError(f"error applying patch: failed to merge patch: {error}") from None


def _atomic_parts(atom: Atom, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of atomic lists and maps that a configuration sets."""
    kind = kind_of(atom, value)
    if isinstance(kind, MapType) and isinstance(value, dict):
        if kind.atomic:
            yield path
        for name in sorted(value):
            child = kind.named.get(name)
            if child is not None:
                yield from _atomic_parts(child, value[name], f"{path}.{name}")
    elif isinstance(kind, ListType) and isinstance(value, list):
        if kind.atomic:
            yield path
        for index, item in enumerate(value):
            yield from _atomic_parts(kind.element, item, f"{path}[{index}]")


def _operation(patch: JSONPatchValue) -> Mapping[str, Any]:
    """Return an operation of a patch as plain data. Raises MutationError."""
    spend(2)
    spend_on_text(2 * sum(len(each) for name, each in patch.fields.items() if name != "value"))
    operation: dict[str, Any] = {"op": patch.fields.get("op", ""), "path": patch.fields.get("path", "")}
    if patch.fields.get("from"):
        operation["from"] = patch.fields["from"]
    if "value" in patch.fields:
        value = patch.fields["value"]
        _check_fields(value)
        operation["value"] = _json(value)
    return operation


_AUTHORIZER_TYPES: Final = "kubernetes.authorization."
_NO_JSON: Final = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "


def _json(value: Any) -> Any:
    """Return a value as plain data, converted as protobuf's Value does. Raises MutationError."""
    spend(2)
    if isinstance(value, str | bytes):
        spend_on_text(2 * len(value))
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return int(value) if -_MAX_SAFE <= value <= _MAX_SAFE else str(int(value))
        case bytes():
            return b64encode(value).decode()
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case ObjectValue():
            return {name: _json(each) for name, each in value.fields.items()}
        case list() | tuple():
            return [_json(each) for each in value]
        case Optional():
            if not value.has_value:
                raise MutationError(f"{_NO_JSON}optional.none() dereference")
            return _json(value.value)
    if not is_map(value) or isinstance(value, JSONPatchValue):
        kind = type_of_value(value).name
        if kind == "type":
            raise MutationError(f"{_NO_JSON}type conversion not supported for 'type'")
        shown = kind if kind.startswith(_AUTHORIZER_TYPES) else kind.rpartition(".")[2]
        raise MutationError(f"{_NO_JSON}type conversion error from '{shown}' to '*structpb.Value'")
    found: dict[str, Any] = {}
    for key, each in entries(value):
        if not isinstance(key, str):
            raise MutationError(f"{_NO_JSON}unsupported type conversion from '{type_of_value(key).name}' to string")
        found[key] = _json(each)
    return found
