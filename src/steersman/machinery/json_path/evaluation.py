"""Evaluation of JSONPath templates on plain JSON data (k8s.io/client-go `util/jsonpath/jsonpath.go`).

Missing members are not an error, as upstream for custom resources. Upstream evaluates any number of values: a few `..`
in a row find more than any object has. Here one evaluation visits at most MAX_VISITED values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from steersman.machinery.errors.go_print import go_type, go_value
from steersman.machinery.json_path.parser import (
    EXISTS,
    Action,
    Boolean,
    Field,
    Filter,
    Identifier,
    JSONPathError,
    Node,
    Number,
    Recursive,
    Slice,
    Template,
    Text,
    Union,
    Wildcard,
)

MAX_VISITED: Final = 1 << 16
"""The most values that one evaluation visits; an evaluation that needs more fails like any other error."""

Values = list[Any]


class Byte(int):
    """A byte of text, found by `.*` and `..`. It can be compared with numbers but is not a number for a column."""

    __slots__ = ()


class _Stopped(JSONPathError):
    """An evaluation error, with the values found so far: a filter only asks whether there are any."""

    def __init__(self, message: str, found: Values) -> None:
        super().__init__(message)
        self.found = found


def find_results(template: Template, data: Any) -> list[Values]:
    """Return the values found by each node of the template. Raises JSONPathError."""
    return _Evaluation().blocks(template, data)


class _Evaluation:
    """One evaluation: its remaining budget of values, and the ranges around the current node."""

    def __init__(self) -> None:
        self._left = MAX_VISITED
        self._in_range = 0
        self._range_begins = self._range_ends = False

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise JSONPathError("too many values")

    def blocks(self, template: Template, data: Any) -> list[Values]:
        """Return the values of each node of `template`, up to the end of the current range."""
        results: list[Values] = []
        index = 0
        while index < len(template):
            values = self._walk([data], template[index])
            index += 1
            if self._range_ends:
                self._range_ends = False
                break
            if not self._range_begins:
                results.append(values)
                continue
            self._range_begins = False
            self._in_range += 1
            inside = template[index : _end_of_range(template, index)]
            for item in values:
                results += self.blocks(inside, item)
            self._in_range -= 1
            index += len(inside)
        return results

    def _walk(self, values: Values, node: Node) -> Values:
        self._spend(1 + len(values))
        match node:
            case Action():
                return self._action(values, node)
            case Text():
                return [node.text]
            case Field():
                return [value[node.name] for value in values if isinstance(value, dict) and node.name in value]
            case Number() | Boolean():
                return [node.value] * len(values)
            case Slice():
                return self._slice(values, node)
            case Wildcard():
                return [item for value in values for item in self._within(value)]
            case Recursive():
                return self._recursive(values)
            case Union():
                return self._union(values, node)
            case Filter():
                return self._filter(values, node)
            case Identifier():
                return self._identifier(values, node)

    def _action(self, values: Values, action: Action) -> Values:
        for node in action.nodes:
            values = self._walk(values, node)
        return values

    def _identifier(self, values: Values, node: Identifier) -> Values:
        if node.name == "range":
            self._range_begins = True
            return values
        if node.name != "end":
            raise _Stopped(f"unrecognized identifier {node.name}", values)
        if not self._in_range:
            raise _Stopped("not in range, nothing to end", [])
        self._range_ends = True
        return []

    def _slice(self, values: Values, node: Slice) -> Values:
        results: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise _Stopped(f"{go_type(value)} is not array or slice", values)
            start, end = _bounds(node, len(value))
            if start == end:
                return results
            _check_bounds(start, end, len(value), values)
            if node.step is not None and node.step <= 0:
                raise _Stopped("step must be > 0", values)
            self._spend(end - start)
            results += value[start : end : node.step or 1]
        return results

    def _union(self, values: Values, node: Union) -> Values:
        results: Values = []
        for action in node.actions:
            try:
                results += self._action(values, action)
            except _Stopped as error:
                raise _Stopped(str(error), values) from error
        return results

    def _within(self, value: Any) -> Values:
        """Return the members of an object, the items of a list, or the bytes of text."""
        if isinstance(value, dict):
            items = list(value.values())
        elif isinstance(value, list):
            items = value
        elif isinstance(value, str):
            self._spend(len(value))
            return [Byte(byte) for byte in value.encode("utf-8", "replace")]
        else:
            return []
        self._spend(len(items))
        return items

    def _recursive(self, values: Values) -> Values:
        """Return all values that contain anything, outer values first."""
        results: Values = []
        ahead: list[Iterator[Any]] = [iter(values)]
        while ahead:
            value = next(ahead[-1], _END)
            if value is _END:
                ahead.pop()
            elif isinstance(value, str):
                if value:
                    results.append(value)
            elif items := self._within(value):
                results.append(value)
                ahead.append(iter(items))
        return results

    def _filter(self, values: Values, node: Filter) -> Values:
        results: Values = []
        for value in values:
            if not isinstance(value, list):
                raise _Stopped(f"{go_value(value)} is not array or slice and cannot be filtered", values)
            for item in value:
                if self._passes(item, node, values, results):
                    results.append(item)
        return results

    def _passes(self, item: Any, node: Filter, values: Values, found: Values) -> bool:
        if node.operator == EXISTS:
            try:
                return bool(self._action([item], node.left))
            except _Stopped as error:
                return bool(error.found)
        compared: Values = []
        for side in (node.left, node.right):
            try:
                results = self._action([item], side)
            except _Stopped as error:
                raise _Stopped(str(error), values) from error
            if not results:
                return False
            if len(results) > 1:
                raise _Stopped("can only compare one element at a time", values)
            compared += results
        compare = _COMPARISONS.get(node.operator)
        if compare is None:
            raise _Stopped(f"unrecognized filter operator {node.operator}", found)
        try:
            return compare(*compared)
        except JSONPathError as error:
            raise _Stopped(str(error), found) from error


_END: Final = object()


def _end_of_range(template: Template, start: int) -> int:
    """Return the index after the action that ends the range that begins before `start`."""
    depth = 1
    for index, node in enumerate(islice(template, start, None), start):
        names = [each.name for each in node.nodes if isinstance(each, Identifier)] if isinstance(node, Action) else ()
        depth += ("range" in names) - ("end" in names)
        if not depth:
            return index + 1
    return len(template)


def _bounds(node: Slice, length: int) -> tuple[int, int]:
    """Return the first and the last index (exclusive) in a list of this length; they may be out of bounds."""
    start = node.start or 0
    end = length if node.end is None else node.end
    if start < 0:
        start += length
    if end < 0 or (end == 0 and node.single):
        end += length
    return start, end


def _check_bounds(start: int, end: int, length: int, values: Values) -> None:
    if not 0 <= start < length:
        raise _Stopped(f"array index out of bounds: index {start}, length {length}", values)
    if not 0 <= end <= length:
        raise _Stopped(f"array index out of bounds: index {end - 1}, length {length}", values)
    if start > end:
        raise _Stopped(f"starting index {start} is greater than ending index {end}", values)


def _kind(value: Any) -> type:
    """Return the type of a comparable value: bool, int, float, str, or Byte. Raises JSONPathError for others."""
    kind = type(value)
    if kind not in (bool, int, float, str, Byte):
        raise JSONPathError("invalid type for comparison")
    return kind


def _equal(left: Any, right: Any) -> bool:
    _comparable(left, right)
    return bool(left == right)


def _less(left: Any, right: Any) -> bool:
    if _comparable(left, right) is bool:
        raise JSONPathError("invalid type for comparison")
    if isinstance(left, str):  # compared by bytes, as Go does
        return left.encode("utf-8", "replace") < str(right).encode("utf-8", "replace")
    return bool(left < right)


def _comparable(left: Any, right: Any) -> type:
    kind, other = _kind(left), _kind(right)
    if kind is not other and {kind, other} != {int, Byte}:
        raise JSONPathError("incompatible types for comparison")
    return kind


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": _less,
    ">": lambda left, right: not (_less(left, right) or _equal(left, right)),
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<=": lambda left, right: _less(left, right) or _equal(left, right),
    ">=": lambda left, right: not _less(left, right),
}
