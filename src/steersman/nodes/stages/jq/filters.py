"""Filters of jq: functions from a value to any number of values, of which expressions consist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from steersman.nodes.stages.jq import values
from steersman.nodes.stages.jq.values import JQError, Run, Value, truth


class Scope:
    """Variables and functions at a place of an expression, during one evaluation."""

    __slots__ = ("_above", "_name", "_value", "run")

    def __init__(self, run: Run, above: Scope | None = None, name: str = "", value: Any = None) -> None:
        self.run: Final = run
        self._above = above
        self._name = name
        self._value = value

    def with_(self, name: str, value: Any) -> Scope:
        """Return a scope that has a variable, or a function, in addition."""
        return Scope(self.run, self, name, value)

    def find(self, name: str) -> Any:
        """Return a variable or a function, which the parser has checked to exist."""
        here: Scope | None = self
        while here is not None and here._name != name:
            here = here._above
        return self.run.library[name] if here is None else here._value


Filter = Callable[[Scope, Value], Iterator[Value]]
Operator = Callable[[Run, Value, Value], Value]


class Function:
    """Defined function: its parameters, its body, and the scope of its definition, None for one of the library."""

    __slots__ = ("body", "name", "parameters", "scope")

    def __init__(self, name: str, parameters: Sequence[str], body: Filter) -> None:
        self.name: Final = name
        self.parameters: Final = parameters
        self.body: Final = body
        self.scope: Scope | None = None


class Closure:
    """Argument of a call: a filter with the scope of the call."""

    __slots__ = ("filter", "scope")

    def __init__(self, filter_: Filter, scope: Scope) -> None:
        self.filter: Final = filter_
        self.scope: Final = scope


def identity(scope: Scope, value: Value) -> Iterator[Value]:
    """Yield the value itself."""
    yield value


def literal(found: Value) -> Filter:
    """Return a filter that yields one value."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        yield found

    return filter_


def variable(name: str) -> Filter:
    """Return a filter that yields a variable."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        yield scope.find(name)

    return filter_


def pipe(first: Filter, second: Filter) -> Filter:
    """Return a filter that applies the second filter to each value of the first."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        spend = scope.run.spend
        for each in first(scope, value):
            spend()
            yield from second(scope, each)

    return filter_


def comma(first: Filter, second: Filter) -> Filter:
    """Return a filter that yields the values of both."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        yield from first(scope, value)
        yield from second(scope, value)

    return filter_


def field(target: Filter, name: str) -> Filter:
    """Return a filter that yields a member of each value of the target."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in target(scope, value):
            if isinstance(each, dict):
                yield each.get(name)
            else:
                yield values.index(scope.run, each, name)

    return filter_


def index(target: Filter, key: Filter) -> Filter:
    """Return a filter that yields members or elements of each value of the target."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in target(scope, value):
            for found in key(scope, value):
                scope.run.spend()
                yield values.index(scope.run, each, found)

    return filter_


def part(target: Filter, begin: Filter, end: Filter) -> Filter:
    """Return a filter that yields a part of each value of the target."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in target(scope, value):
            for last in end(scope, value):
                for first in begin(scope, value):
                    yield values.part(scope.run, each, first, last)

    return filter_


def iterate(target: Filter) -> Filter:
    """Return a filter that yields all members or elements of each value of the target."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        spend = scope.run.spend
        for each in target(scope, value):
            for found in values.values_of(scope.run, each):
                spend()
                yield found

    return filter_


def attempt(tried: Filter, caught: Filter | None) -> Filter:
    """Return a filter that yields the values up to an error, and then those of `caught` for the error's value."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        found = tried(scope, value)
        while True:
            try:
                each = next(found)
            except StopIteration:
                return
            except JQError as error:
                if caught is not None:
                    yield from caught(scope, error.value)
                return
            yield each

    return filter_


def operation(operator: Operator, one: Filter, other: Filter) -> Filter:
    """Return a filter that yields the result of an operator for all pairs."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        run = scope.run
        for right in other(scope, value):
            for left in one(scope, value):
                run.spend()
                yield operator(run, left, right)

    return filter_


def negation(target: Filter) -> Filter:
    """Return a filter that yields numbers with the other sign."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in target(scope, value):
            if values.type_name(each) != "number":
                raise JQError(f"{values.shown(scope.run, each)} cannot be negated")
            yield -each

    return filter_


def logic(one: Filter, other: Filter, *, absorbing: bool) -> Filter:
    """Return `or` (absorbing True) or `and` (absorbing False)."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for left in one(scope, value):
            if truth(left) is absorbing:
                yield absorbing
            else:
                for right in other(scope, value):
                    scope.run.spend()
                    yield truth(right)

    return filter_


def alternative(one: Filter, other: Filter) -> Filter:
    """Return a filter that yields the true values of one filter, or those of the other if there are none."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        found = False
        try:
            for each in one(scope, value):
                if truth(each):
                    found = True
                    yield each
        except JQError:
            pass
        if not found:
            yield from other(scope, value)

    return filter_


def condition(test: Filter, then: Filter, other: Filter) -> Filter:
    """Return `if`."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in test(scope, value):
            scope.run.spend()
            yield from (then if truth(each) else other)(scope, value)

    return filter_


def binding(source: Filter, name: str, body: Filter) -> Filter:
    """Return a filter that applies the body with each value of the source as a variable."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in source(scope, value):
            scope.run.spend()
            yield from body(scope.with_(name, each), value)

    return filter_


def reduction(source: Filter, name: str, initial: Filter, update: Filter) -> Filter:
    """Return `reduce`."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for state in initial(scope, value):
            for each in source(scope, value):
                scope.run.spend()
                state = _last(update(scope.with_(name, each), state))
            yield state

    return filter_


def _last(found: Iterator[Value]) -> Value:
    last = None
    for each in found:
        last = each
    return last


def steps(source: Filter, name: str, initial: Filter, update: Filter, extract: Filter) -> Filter:
    """Return `foreach`."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for state in initial(scope, value):
            for each in source(scope, value):
                inner = scope.with_(name, each)
                for updated in update(inner, state):
                    scope.run.spend()
                    state = updated
                    yield from extract(inner, state)

    return filter_


def array(items: Filter) -> Filter:
    """Return a filter that yields the array of all values."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        found, spend = [], scope.run.spend
        for each in items(scope, value):
            spend()
            found.append(each)
        yield found

    return filter_


def new_object(members: Sequence[tuple[Filter, Filter]]) -> Filter:
    """Return a filter that yields objects of all combinations of keys and values."""

    def combined(scope: Scope, value: Value, at: int, made: dict[str, Value]) -> Iterator[Value]:
        if at == len(members):
            yield made
            return
        key, content = members[at]
        for name in key(scope, value):
            if not isinstance(name, str):
                raise JQError(f"Object keys must be strings, not {values.shown(scope.run, name)}")
            for each in content(scope, value):
                scope.run.spend(1 + len(made) // 8)
                yield from combined(scope, value, at + 1, {**made, name: each})

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        yield from combined(scope, value, 0, {})

    return filter_


def text(parts: Sequence[str | Filter], format_: Callable[[Run, Value], str]) -> Filter:
    """Return a filter that yields texts with interpolated values in a format."""

    def combined(scope: Scope, value: Value, at: int, behind: str) -> Iterator[Value]:
        if at < 0:
            yield behind
            return
        here = parts[at]
        for each in [here] if isinstance(here, str) else here(scope, value):
            found = each if isinstance(here, str) else format_(scope.run, each)
            scope.run.spend_on_text(len(found) + len(behind))
            yield from combined(scope, value, at - 1, found + behind)

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        yield from combined(scope, value, len(parts) - 1, "")

    return filter_


def definition(function: Function, body: Filter) -> Filter:
    """Return a filter that applies the body with a function."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        made = Function(function.name, function.parameters, function.body)
        made.scope = scope.with_(function.name, made)
        yield from body(made.scope, value)

    return filter_


def call(name: str, arguments: Sequence[Filter]) -> Filter:
    """Return a filter that calls a defined function, or the argument of this name."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        found = scope.find(name)
        run = scope.run
        run.spend()
        run.enter()
        try:
            if isinstance(found, Closure):
                yield from found.filter(found.scope, value)
            else:
                inner = Scope(run) if found.scope is None else found.scope
                yield from _called(found, [Closure(each, scope) for each in arguments], 0, inner, value)
        finally:
            run.depth -= 1

    return filter_


def _called(function: Function, arguments: Sequence[Closure], at: int, scope: Scope, value: Value) -> Iterator[Value]:
    """Call a function whose parameters before `at` are in the scope; each value of a `$parameter` is a call."""
    if at == len(arguments):
        yield from function.body(scope, value)
        return
    name, given = function.parameters[at], arguments[at]
    if not name.startswith("$"):
        yield from _called(function, arguments, at + 1, scope.with_(f"{name}/0", given), value)
        return
    for each in given.filter(given.scope, value):
        scope.run.spend()
        inner = scope.with_(name, each).with_(f"{name[1:]}/0", Closure(literal(each), given.scope))
        yield from _called(function, arguments, at + 1, inner, value)
