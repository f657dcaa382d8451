"""Steps that create lists, maps and objects."""

from __future__ import annotations

from typing import Any

from steersman.cel.ast import CreateList, CreateMap, CreateStruct
from steersman.cel.environment import Environment
from steersman.cel.sizes import LIST_COST, MAP_COST, STRUCT_COST
from steersman.cel.steps import Constant, Frame, Plan, ProgramError, Step
from steersman.cel.values import EvaluationError, Map, Optional, print_value


def new_list(plan: Plan, node: CreateList) -> Step:
    """Return the step of a list literal, a Constant if all its elements are constants."""
    elements = [plan(each) for each in node.elements]
    optional = node.optional
    if not optional:
        if all(isinstance(each, Constant) for each in elements):
            return Constant([each.value for each in elements if isinstance(each, Constant)])

        def plain(frame: Frame) -> Any:
            values = [each(frame) for each in elements]
            frame.charge(LIST_COST)
            return values

        return plain

    def with_optional(frame: Frame) -> Any:
        values = []
        for index, each in enumerate(elements):
            value = each(frame)
            if index in optional:
                if not isinstance(value, Optional):
                    raise EvaluationError(
                        f"cannot initialize optional list element from non-optional value {print_value(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values.append(value)
        frame.charge(LIST_COST)
        return values

    return with_optional


def new_map(plan: Plan, node: CreateMap) -> Step:
    """Return the step of a map literal, a Constant if all its keys and values are constants.

    Raises ProgramError if constant entries make no map, e.g. for a repeated key.
    """
    planned = [(plan(each.key), plan(each.value), each.optional) for each in node.entries]

    def make(frame: Frame) -> Any:
        values = []
        for key_step, value_step, optional in planned:
            key, value = key_step(frame), value_step(frame)
            if optional:
                if not isinstance(value, Optional):
                    raise EvaluationError(
                        f"cannot initialize optional entry '{print_value(key)}' from non-optional value "
                        f"{print_value(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values.append((key, value))
        frame.charge(MAP_COST)
        return Map(values)

    if all(
        isinstance(key, Constant) and isinstance(value, Constant) and not optional for key, value, optional in planned
    ):
        try:
            return Constant(make(Frame({}, MAP_COST)))
        except EvaluationError as error:
            raise ProgramError(str(error)) from None
    return make


def new_object(plan: Plan, environment: Environment, node: CreateStruct) -> Step:
    """Return the step of a message literal, which fails for types that are only declared for reading."""
    fields = [(init.name, plan(init.value), init.optional) for init in node.fields]
    name = node.type_name
    constructed = environment.constructed(name)

    def make(frame: Frame) -> Any:
        values = {}
        for field, step, optional in fields:
            value = step(frame)
            if optional:
                if not isinstance(value, Optional):
                    raise EvaluationError(
                        f"cannot initialize optional entry '{field}' from non-optional value {print_value(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values[field] = value
        if constructed is None:
            # As upstream, types with fields are only declared for reading, and nothing creates their objects.
            raise EvaluationError(f"unknown type '{name}'")
        frame.charge(STRUCT_COST)
        return constructed.make(values)

    return make
