"""Custom values of the caller of an evaluation, and the outcome of failing evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.cel import declared, types
from steersman.cel.declared import declared_object
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.values import CostLimitExceeded, CustomList, EvaluationError, LazyMap, equal, type_of_value


class Unordered(CustomList):
    __slots__ = ()

    def equals(self, other: Any) -> bool:
        return sorted(self) == sorted(other)

    def plus(self, other: list[Any] | tuple[Any, ...]) -> list[Any]:
        return Unordered([*other, *self])


class Same(LazyMap):
    __slots__ = ()

    def find(self, key: Any) -> tuple[Any, Any] | None:
        return key, 1

    def __iter__(self) -> Iterator[Any]:
        return iter(("a",))

    def __len__(self) -> int:
        return 1

    def equals(self, other: Any) -> bool:
        return True


def test_lists_of_their_own_are_compared_and_added_to_their_way() -> None:
    assert equal(Unordered([1, 2]), [2, 1])
    assert not equal([2, 1], Unordered([1, 2]))
    assert type_of_value(Unordered([])) is types.LIST_OF_DYN
    environment = base_environment().extended({"a": types.list_of(types.INT)})
    program = compile_expression("a + [3]", environment).program(kubernetes_costs)
    assert program.evaluate({"a": Unordered([1])}, 1000)[0] == [3, 1]


def test_maps_of_their_own_are_compared_their_way() -> None:
    assert equal(Same(), {"b": 2})
    assert not equal({"b": 2}, Same())


def test_the_cost_of_what_fails_is_told() -> None:
    environment = base_environment().extended({"a": types.INT})
    program = compile_expression("1 / a + 1", environment).program(kubernetes_costs)
    value, cost = program.outcome({"a": 0}, 1000)
    assert isinstance(value, EvaluationError)
    assert str(value) == "division by zero"
    assert cost > 0
    assert isinstance(program.outcome({"a": 1}, 0)[0], CostLimitExceeded)
    assert program.outcome({"a": 1}, 1000) == program.evaluate({"a": 1}, 1000)


def test_an_environment_about_other_variables_shares_the_rest() -> None:
    base = base_environment()
    thing = declared_object("thing", {"size": declared.INT})
    environment = base.about({"it": thing.type}, {"thing": thing})
    assert environment.functions is base.functions
    assert compile_expression("it.size > 1 && duration('1s') == duration('1s')", environment).type is types.BOOL
    assert "it" not in base.variables
