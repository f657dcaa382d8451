"""Values of CEL: the operands and results of expressions.

bool, str, bytes, float and None represent themselves, int a signed and `UInt` an unsigned 64-bit number, list and tuple
are lists. A dict is a map with string keys or an object, as in JSON; a `Map` has keys of any type. Functions raise
`EvaluationError` if they have no result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from steersman.cel import types
from steersman.cel.types import Kind, Type, opaque
from steersman.cel.work import spend

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1


class EvaluationError(Exception):
    """An expression has no value for these inputs; the message is the reference implementation's."""


class CostLimitExceeded(Exception):
    """The cost of an evaluation is above its limit. In contrast to an EvaluationError, no operator absorbs it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    """Return the error of a call whose arguments fit no overload."""
    return EvaluationError("no such overload")


class UInt(int):
    """An unsigned number. Arithmetic returns plain numbers, which CEL's operators convert back."""

    __slots__ = ()


class Timestamp:
    """A time in nanoseconds since 1970, from year 1 to 9999."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos: Final = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Duration:
    """A duration in nanoseconds, as a signed 64-bit number."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos: Final = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Optional:
    """A value that may be missing."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: Any = None, *, has_value: bool = True) -> None:
        self.value: Final = value
        self.has_value: Final = has_value

    def get(self) -> Any:
        """Return the value. Raises EvaluationError if there is none."""
        if not self.has_value:
            raise EvaluationError("optional.none() dereference")
        return self.value


NONE: Final = Optional(has_value=False)


class Extension:
    """A value of a library's type. `==` determines equality."""

    __slots__ = ()
    cel_type: Type


class Record(Extension):
    """A value with fields that an expression has created. Its fields can only be read where its type is known."""

    __slots__ = ()

    def get(self, field: str) -> Any:
        """Return the value of a field, None if it is not set."""
        raise NotImplementedError

    def has(self, field: str) -> bool:
        """Return True if a field is set."""
        raise NotImplementedError

    @property
    def is_zero(self) -> bool:
        """True if no field is set."""
        return False


def _key(value: Any) -> Any:
    """Return the lookup key of a key of a Map. Equal numbers are the same key whatever their type, but not bools."""
    kind = type(value)
    if kind is bool:
        return ("bool", value)
    # Keys without an order or hash are only found by the same object.
    return value if kind in _KEY_TYPES else (kind.__name__, id(value))


_KEY_TYPES: Final = frozenset({int, str, UInt, float})


class Map:
    """A map with keys other than strings, or one that an expression has created."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries: Final[dict[Any, tuple[Any, Any]]] = {_key(key): (key, value) for key, value in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return the keys with their values, in insertion order."""
        return iter(self._entries.values())

    def find(self, key: Any) -> tuple[Any, Any] | None:
        """Return the entry of a key."""
        return self._entries.get(_key(key))

    def insert(self, key: Any, value: Any) -> None:
        """Add an entry. Raises EvaluationError if the key exists."""
        if self.find(key) is not None:
            raise EvaluationError(f"insert failed: key {print_value(key)} already exists")
        self._entries[_key(key)] = (key, value)


def find_key(container: Any, key: Any) -> tuple[Any, Any] | None:
    """Return the entry for a key of a map or an object."""
    if isinstance(container, dict):
        if type(key) is not str:
            return None
        return (key, container[key]) if key in container else None
    if isinstance(container, Map):
        return container.find(key)
    found: tuple[Any, Any] | None = container.find(key)
    return found


def is_map(value: Any) -> bool:
    """Return True for a map or an object."""
    return isinstance(value, dict | Map | LazyMap)


class LazyMap:
    """A map that creates its values when they are needed."""

    __slots__ = ()

    def find(self, key: Any) -> tuple[Any, Any] | None:
        """Return the entry of a key."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yield the keys with their values."""
        for key in self:
            found = self.find(key)
            if found is not None:
                yield found

    def equals(self, other: Any) -> bool:
        """Return True if another value is equal."""
        return is_map(other) and _equal_maps(self, other)


class CustomList(list[Any]):
    """A list with its own comparison and addition."""

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        """Return True if another value is equal."""
        raise NotImplementedError

    def plus(self, other: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Return the result of `+` with another list."""
        raise NotImplementedError


class TextList(CustomList):
    """The list of strings that a function of strings returns. Upstream represents it differently, which has visible
    effects.
    """

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        return isinstance(other, list | tuple) and len(self) == len(other) and _equal_items(self, other)

    def plus(self, other: list[Any] | tuple[Any, ...]) -> list[Any]:
        return [*self, *other] if other else self


def entries(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the keys of a map with their values."""
    items: Iterable[tuple[Any, Any]] = value.items()
    return items


_SIMPLE_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: types.LIST_OF_DYN,
    tuple: types.LIST_OF_DYN,
    dict: types.MAP_OF_DYN,
    Map: types.MAP_OF_DYN,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Optional: opaque(types.OPTIONAL_NAME, types.DYN),
    Type: types.TYPE,
}


def type_of_value(value: Any) -> Type:
    """Return the type of a value at run time, which for lists and maps does not include the types of their content."""
    found = _SIMPLE_TYPES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Extension):
        return value.cel_type
    if isinstance(value, LazyMap):
        return types.MAP_OF_DYN
    if isinstance(value, CustomList):
        return types.LIST_OF_DYN
    raise TypeError(f"no CEL value: {type(value).__name__}")


def is_instance(value: Any, wanted: Type) -> bool:
    """Return True if a value is acceptable for a declared type."""
    if wanted.kind in (Kind.DYN, Kind.ANY, Kind.TYPE_PARAM):
        return True
    if type_of_value(value).name != wanted.name:
        return False
    if wanted.kind is Kind.LIST:
        return not value or is_instance(value[0], wanted.params[0])
    if wanted.kind is Kind.MAP and len(value):
        key, item = next(iter(entries(value)))
        return is_instance(key, wanted.params[0]) and is_instance(item, wanted.params[1])
    return True


_NUMBERS: Final = frozenset({int, UInt, float})
_IDENTICAL: Final = frozenset({bool, int, UInt, float, str, bytes, Timestamp, Duration})


def compare_numbers(left: Any, right: Any) -> int:
    """Return -1, 0 or 1. Integers are compared with a double as doubles, unless that is out of their range. Raises
    EvaluationError for NaN.
    """
    kind, other = type(left), type(right)
    if (kind is float and math.isnan(left)) or (other is float and math.isnan(right)):
        raise EvaluationError("NaN values cannot be ordered")
    if kind is float and other is not float:
        return -compare_numbers(right, left)
    if other is float and kind is not float:
        low, high = (0, MAX_UINT) if kind is UInt else (MIN_INT, MAX_INT)
        if right < low or right > high:
            return 1 if right < low else -1
        left = float(left)
    return bool(left > right) - bool(left < right)


def equal(left: Any, right: Any) -> bool:
    """Return True if two values are equal. Values of different types are not, except for numbers.

    Raises EvaluationError for values that cannot be compared. Within lists and maps, as upstream, they count as equal.
    """
    kind, other = type(left), type(right)
    if kind is other and kind in _IDENTICAL:
        return bool(left == right)
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:
            return False
        return compare_numbers(left, right) == 0
    if left is None or right is None:
        return left is right
    if isinstance(left, CustomList | LazyMap):
        return left.equals(right)
    if isinstance(left, list | tuple):
        if not isinstance(right, list | tuple) or len(left) != len(right):
            return False
        spend(len(left))
        return _equal_items(left, right)
    if is_map(left):
        return is_map(right) and _equal_maps(left, right)
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.has_value != right.has_value:
            return False
        return not left.has_value or equal(left.value, right.value)
    if isinstance(left, Type):
        return isinstance(right, Type) and left.name == right.name
    return bool(kind is other and left == right)


def is_equal(left: Any, right: Any) -> bool:
    """Return True if two values can be compared and are equal."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def _may_be_equal(left: Any, right: Any) -> bool:
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def _equal_items(left: Iterable[Any], right: Iterable[Any]) -> bool:
    try:
        return all(map(equal, left, right))
    except EvaluationError:
        return all(map(_may_be_equal, left, right))


def _equal_maps(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    spend(len(left))
    for key, value in entries(left):
        found = find_key(right, key)
        if found is None or not _may_be_equal(value, found[1]):
            return False
    return True


def size_of_value(value: Any) -> int:
    """Return the length of a string, bytes, a list or a map; 1 for other values."""
    if isinstance(value, str | bytes | list | tuple | dict | Map | LazyMap):
        return len(value)
    if isinstance(value, Extension):
        size = getattr(value, "cel_size", None)
        return 1 if size is None else int(size())
    return 1


def format_double(value: float, most_digits: int = 6) -> str:
    """Format a double like Go's `%g`: with an exponent from `most_digits` digits before the point on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.replace("-", "").replace(".", "").strip("0")
    sign = "-" if text.startswith("-") else ""
    if value == 0:
        return sign + "0"
    power = math.floor(math.log10(abs(value))) if not exponent else int(exponent)
    if not exponent:
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        power = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0"))) - 1
    if power < -4 or power >= most_digits:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    digits = digits.ljust(power + 1, "0")
    rest = f".{digits[power + 1 :]}" if len(digits) > power + 1 else ""
    return f"{sign}{digits[: power + 1]}{rest}"


def print_value(value: Any) -> str:
    """Return the text of a value in messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_double(value, 21)
    if value is None:
        return "null"
    return str(value)
