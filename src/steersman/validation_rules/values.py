"""JSON values as expressions see them (apiserver `cel/common/valuesunstructured.go`).

The schema determines the type of a value. Strings become durations, timestamps and bytes by their formats. Objects have
the members that the schema declares, under the names that expressions use. Sets and lists with keys have their own
equality and addition. Members are converted lazily.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.cel.moments import SECOND, duration, read_timestamp
from steersman.cel.names import escape, unescape
from steersman.cel.values import CustomList, Duration, EvaluationError, LazyMap, equal, find_key, is_map
from steersman.machinery.errors.field import go_json
from steersman.machinery.errors.go_print import go_type
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.schema import Node
from steersman.schema.formats import DURATION_PART
from steersman.schema.nodes import EMBEDDED, INT_OR_STRING, NULLABLE, PRESERVE
from steersman.validation_rules.declarations import members_of_resource


def value_of(raw: Any, node: Node, *, is_resource: bool = False) -> Any:
    """Return a value as expressions see it. Raises EvaluationError if it does not fit the schema.

    `is_resource` is True for a resource, which has metadata whatever the schema says.
    """
    if raw is None:
        if node.traits & NULLABLE:
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")
    if node.traits & INT_OR_STRING:
        if isinstance(raw, str) or type(raw) is int:
            return raw
        raise EvaluationError("invalid data, expected XIntOrString value to be either a string or integer")
    kind = node.types[0] if node.types else ""
    make = _VALUES.get(kind)
    if make is not None:
        return make(raw, node)
    if kind == "object":
        if not isinstance(raw, dict):
            raise EvaluationError("invalid data, expected a map for the provided schema with type=object")
        return Object(raw, node, is_resource=is_resource or bool(node.traits & EMBEDDED))
    if node.traits & PRESERVE:
        return Hidden(raw)
    raise EvaluationError(
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        f"x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {kind}"
    )


class Hidden(LazyMap):
    """A value that only x-kubernetes-preserve-unknown-fields allows: expressions can only compare it for equality."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw: Final = raw

    def find(self, key: Any) -> tuple[Any, Any] | None:
        raise EvaluationError("no such overload")

    def __iter__(self) -> Iterator[Any]:
        raise EvaluationError("no such overload")

    def __len__(self) -> int:
        return 1

    def equals(self, other: Any) -> bool:
        return isinstance(other, Hidden) and _equal(self.raw, other.raw)


class Object(LazyMap):
    """An object with the members that the schema declares, or a map with values of one schema."""

    __slots__ = ("_known", "_members", "_values", "raw")

    def __init__(self, raw: dict[str, Any], node: Node, *, is_resource: bool) -> None:
        self.raw: Final = raw
        self._members: Final[Mapping[str, Node]] = members_of_resource(node) if is_resource else node.properties
        self._values: Final = node.additional if isinstance(node.additional, Node) and not self._members else None
        self._known: Final[dict[str, tuple[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[str]:
        if self._values is not None:
            yield from self.raw
            return
        for name in self.raw:
            if name in self._members:
                yield escape(name) or name

    def find(self, key: Any) -> tuple[Any, Any] | None:
        if type(key) is not str:
            raise EvaluationError("no such overload")
        found = self._known.get(key)
        if found is None:
            made = self._make(key)
            if made is None:
                return None
            found = self._known[key] = made
        return found

    def _make(self, key: str) -> tuple[str, Any] | None:
        if self._values is not None:
            return (key, value_of(self.raw[key], self._values)) if key in self.raw else None
        name = unescape(key)
        node = None if name is None else self._members.get(name)
        if name is None or node is None or self.raw.get(name) is None:
            return None
        return key, value_of(self.raw[name], node)

    def equals(self, other: Any) -> bool:
        """Compare the members that expressions see; invisible members must be equal if both objects have them."""
        if not is_map(other) or len(self) != len(other):
            return False
        for name, raw in self.raw.items():
            if self._values is None and name not in self._members:
                if isinstance(other, Object) and name in other.raw and not _equal(raw, other.raw[name]):
                    return False
                continue
            # Upstream looks up the member by its unescaped name, under which some members are not found.
            one, two = self.find(name), find_key(other, name)
            if (one is None) != (two is None):
                return False
            if one is not None and two is not None and not equal(one[1], two[1]):
                return False
        return True


def _equal(left: Any, right: Any) -> bool:
    """Return True if two JSON values are equal; 1 differs from true."""
    return go_json(left) == go_json(right)


class SetOfValues(CustomList):
    """A list of the type `set`, whose order does not matter.

    Like upstream, it looks up items of the other list among its own plain JSON. So items whose format makes them
    timestamps or bytes, and whole numbers that are doubles, are never found, not even in the same list.
    """

    __slots__ = ("_raw",)

    def __init__(self, items: list[Any], raw: list[Any]) -> None:
        super().__init__(items)
        self._raw = raw

    def equals(self, other: Any) -> bool:
        if not isinstance(other, list | tuple) or len(self) != len(other):
            return False
        known = {_scalar_key(item) for item in self._raw}
        return all(_scalar_key(item) in known for item in other)

    def plus(self, other: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Return the list with the missing items of `other` appended."""
        known = {_scalar_key(item) for item in self._raw}
        added = []
        for item in other:
            key = _scalar_key(item)
            if key not in known:
                known.add(key)
                added.append(item)
        return SetOfValues([*self, *added], [*self._raw, *added])


def _scalar_key(value: Any) -> Any:
    """Return a key that distinguishes values; for values without identity it is their JSON."""
    if isinstance(value, Object | Hidden):
        return "json", go_json(value.raw)
    if isinstance(value, dict):
        return "json", go_json(value)
    if isinstance(value, list | tuple):
        return "list", tuple(map(_scalar_key, value))
    return type(value).__name__, value


class ListWithKeys(CustomList):
    """A list of the type `map`, whose items are identified by keys."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def equals(self, other: Any) -> bool:
        if not isinstance(other, list | tuple) or len(self) != len(other):
            return False
        known = {self._key(item): item for item in self}
        for item in other:
            key = self._key(item)
            if key not in known or not equal(known[key], item):
                return False
        return True

    def plus(self, other: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Return the list with items of `other` in place of items with the same keys, and the rest appended."""
        items = list(self)
        positions = {self._key(item): index for index, item in enumerate(items)}
        for item in other:
            position = positions.get(self._key(item))
            if position is None:
                items.append(item)
            else:
                items[position] = item
        return ListWithKeys(items, self.keys)

    def _key(self, item: Any) -> tuple[Any, ...]:
        if not isinstance(item, Object):
            raise EvaluationError(
                f"unexpected data format for element of array with x-kubernetes-list-type=map: {item}"
            )
        # Upstream looks up members by their escaped names.
        return tuple(_scalar_key(item.raw.get(escape(key) or key)) for key in self.keys)


def _list(raw: Any, node: Node) -> Any:
    if not isinstance(raw, list):
        raise EvaluationError("invalid data, expected an array for the provided schema with type=array")
    if node.items is None:
        raise EvaluationError("invalid array type, expected Items with a non-empty Schema")
    below = node.items
    items = [value_of(item, below) for item in raw]
    if node.list_type == "map":
        return ListWithKeys(items, node.map_keys)
    return SetOfValues(items, raw) if node.list_type == "set" else items


def _text(raw: Any, node: Node) -> Any:
    if not isinstance(raw, str):
        raise EvaluationError(f"invalid data, expected string, got {go_type(raw)}")
    match node.declared_format:
        case "duration":
            return read_duration(raw)
        case "date":
            try:
                return read_timestamp(f"{raw}T00:00:00Z")
            except EvaluationError:
                raise EvaluationError(f"Invalid date formatted string {raw}") from None
        case "date-time":
            try:
                return read_timestamp(raw)
            except EvaluationError:
                raise EvaluationError(f"Invalid date-time formatted string {raw}") from None
        case "byte":
            try:
                return b64decode(raw, validate=True)
            except Base64Error:
                raise EvaluationError(f"Invalid byte formatted string {raw}") from None
    return raw


def _number(raw: Any, node: Node) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise EvaluationError(f"invalid data, expected float, got {go_type(raw)}")
    return float(raw)


def _integer(raw: Any, node: Node) -> int:
    if type(raw) is not int:
        raise EvaluationError(f"invalid data, expected int, got {go_type(raw)}")
    return raw


def _boolean(raw: Any, node: Node) -> bool:
    if not isinstance(raw, bool):
        raise EvaluationError(f"invalid data, expected bool, got {go_type(raw)}")
    return raw


_VALUES: Final = {"array": _list, "string": _text, "number": _number, "integer": _integer, "boolean": _boolean}

_UNITS: Final = (
    (1, ("ns",), "nano"),
    (1000, ("us", "µs"), "micro"),
    (1_000_000, ("ms",), "milli"),
    (SECOND, ("s",), "sec"),
    (60 * SECOND, ("m",), "min"),
    (3600 * SECOND, ("h", "hr"), "hour"),
    (24 * 3600 * SECOND, ("d",), "day"),
    (7 * 24 * 3600 * SECOND, ("w", "wk"), "week"),
)
"""Nanoseconds of a unit, its names, and the prefix of its longer names."""


def read_duration(text: str) -> Duration:
    """Parse a duration as formats allow it: Go's form, or numbers with units in any text. Raises EvaluationError."""
    try:
        return Duration(parse_duration(text))
    except DurationError:
        pass
    total = 0
    known = False
    for number, name in DURATION_PART.findall(text):
        unit = to_lower(name)
        for nanos, names, beginning in _UNITS:
            if unit in names or unit.startswith(beginning):
                known = True
                total += int(number[-20:]) * nanos
    if not known:
        raise EvaluationError(f"Invalid duration {text}: unable to parse {text} as duration")
    return duration(total)
