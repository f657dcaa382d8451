"""The function `quantity("1Gi")` and the functions of quantities (apiserver `cel/library` quantity)."""

from __future__ import annotations

from typing import Any, Final

from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, DOUBLE, INT, STRING, object_type
from steersman.cel.values import MAX_INT, MIN_INT, EvaluationError, Extension
from steersman.machinery.values.quantity import Quantity, QuantityError, parse

QUANTITY: Final = object_type("kubernetes.Quantity")


class QuantityValue(Extension):
    """A quantity."""

    __slots__ = ("amount",)
    cel_type = QUANTITY

    def __init__(self, amount: Quantity) -> None:
        self.amount: Final = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)


def read_quantity(text: str) -> QuantityValue:
    """Parse a quantity. Raises EvaluationError."""
    try:
        return QuantityValue(parse(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


def _is_integer(value: QuantityValue) -> bool:
    return value.amount.is_whole() and MIN_INT <= value.amount.scaled(0) <= MAX_INT


def _as_integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.amount.as_int()


def _add(value: QuantityValue, other: Any) -> QuantityValue:
    return QuantityValue(value.amount + _amount(other))


def _subtract(value: QuantityValue, other: Any) -> QuantityValue:
    return QuantityValue(value.amount - _amount(other))


def _amount(value: Any) -> Quantity:
    return value.amount if isinstance(value, QuantityValue) else Quantity(value)


def _compare(value: QuantityValue, other: QuantityValue) -> int:
    return (value.amount > other.amount) - (value.amount < other.amount)


_TWO: Final = (QUANTITY, QUANTITY)

QUANTITIES: Final = Library(
    functions={
        "quantity": (Overload("string_to_quantity", (STRING,), QUANTITY, read_quantity),),
        "isQuantity": (Overload("is_quantity_string", (STRING,), BOOL, _is_quantity),),
        # Upstream does not declare it as a member function, so `q.sign()` is unknown.
        "sign": (Overload("quantity_sign", (QUANTITY,), INT, lambda value: value.amount.sign),),
        "isGreaterThan": (
            Overload("quantity_is_greater_than", _TWO, BOOL, lambda one, other: _compare(one, other) > 0, member=True),
        ),
        "isLessThan": (
            Overload("quantity_is_less_than", _TWO, BOOL, lambda one, other: _compare(one, other) < 0, member=True),
        ),
        "compareTo": (Overload("quantity_compare_to", _TWO, INT, _compare, member=True),),
        "asApproximateFloat": (
            Overload("quantity_get_float", (QUANTITY,), DOUBLE, lambda value: value.amount.as_float(), member=True),
        ),
        "asInteger": (Overload("quantity_get_int", (QUANTITY,), INT, _as_integer, member=True),),
        "isInteger": (Overload("quantity_is_integer", (QUANTITY,), BOOL, _is_integer, member=True),),
        "add": (
            Overload("quantity_add", _TWO, QUANTITY, _add, member=True),
            Overload("quantity_add_int", (QUANTITY, INT), QUANTITY, _add, member=True),
        ),
        "sub": (
            Overload("quantity_sub", _TWO, QUANTITY, _subtract, member=True),
            Overload("quantity_sub_int", (QUANTITY, INT), QUANTITY, _subtract, member=True),
        ),
    }
)
