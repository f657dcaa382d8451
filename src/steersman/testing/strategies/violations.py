"""Objects with exactly one fault, for tests of webhooks and of messages to users.

A valid object is drawn and changed at one place. The judge confirms that the object is invalid there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from steersman.machinery.errors.field import FieldError

from .constraints import Constraints
from .errors import Unsatisfiable
from .hints import hints_of
from .objects import Body, Objects, built_in_drawer, drawer
from .places import Steps, constraints_at, get, put, remove

_TRIED: Final = 40
"""Changes that are tried for one object."""
_MOST_PLACES: Final = 400
_MOST_FRUITLESS: Final = 40
"""Objects in a row without a fault before the schema is said to have none. Hypothesis gives up after 50."""
_WHOLE: Final = "<nil>"
"""Field of errors of a whole object."""


@dataclass(frozen=True)
class NearlyValid:
    """An object with one fault."""

    object: Body
    field: str
    """The field of the server's error, such as `spec.ports[0].port`; "" for an error of the whole object."""
    message: str
    """The server's message about it."""


@dataclass(frozen=True, slots=True)
class _Change:
    steps: Steps
    change: Callable[[Body], bool]


def nearly_valid(
    source: Mapping[str, Any] | str | Path,
    kind: str = "",
    *,
    version: str = "",
    namespace: str = "default",
) -> SearchStrategy[NearlyValid]:
    """Return a strategy for objects with one fault, which a server refuses with an error of one field.

    `source` and the other arguments are those of `custom_resources`; or the name of a built-in kind, such as
    `Deployment`. Raises what these raise. A draw raises Unsatisfiable if the schema has nothing that an object
    could violate.
    """
    if isinstance(source, str) and source.isalpha():
        return Violations(built_in_drawer(source, version, namespace), is_typed=True).strategy
    return Violations(drawer(source, kind, version, namespace)).strategy


class Violations:
    """Draws objects with one fault."""

    def __init__(self, objects: Objects, *, is_typed: bool = False) -> None:
        """With `is_typed` no object is drawn that has a value of another type, which a server cannot decode: it answers
        400, without a field.
        """
        self._objects = objects
        self._is_typed = is_typed
        self._root = Constraints([objects.source.structural.root])
        self._fruitless = 0
        """Objects in a row that could not be made invalid."""

    @property
    def strategy(self) -> SearchStrategy[NearlyValid]:
        """The strategy that draws them."""
        return st.composite(self.draw)()

    def draw(self, draw: DrawFn) -> NearlyValid:
        """Draw an object with one fault. Raises Unsatisfiable if no object can be made invalid."""
        obj = self._objects.draw(draw)
        found = self._with_fault(draw, obj)
        if found is not None:
            self._fruitless = 0
            return found
        self._fruitless += 1
        if self._fruitless >= _MOST_FRUITLESS:
            raise Unsatisfiable(
                f"no change of {obj.get('kind')} objects gives an error of one field: their schema refuses too little"
            )
        return reject()

    def _with_fault(self, draw: DrawFn, obj: Body) -> NearlyValid | None:
        """Return a changed object with one fault, None if no change has made one."""
        changes = [each for steps in _places(obj) for each in self._changes(obj, steps)]
        if not changes:
            return None
        first = draw(st.integers(0, len(changes) - 1))
        for each in (changes[first:] + changes[:first])[:_TRIED]:
            changed = deepcopy(obj)
            if not each.change(changed):
                continue
            error = _single(self._objects.judge.errors(changed))
            if error is None or (self._is_typed and error.field == _WHOLE):
                continue
            return NearlyValid(changed, "" if error.field == _WHOLE else error.field, error.body)
        return None

    def _changes(self, obj: Body, steps: Steps) -> Iterator[_Change]:
        """Yield the changes that may make the value at a position invalid."""
        constraints = constraints_at(self._root, steps)
        if constraints is None:
            return
        value = get(obj, steps)
        for new in _wrong(constraints, value):
            yield _Change(steps, _setting(steps, new))
        for name in constraints.required:
            if isinstance(value, dict) and name in value:
                yield _Change((*steps, name), _removal((*steps, name)))
        for rule in constraints.node.rules:
            yield from self._against(obj, steps, str(rule.get("rule", "")))

    def _against(self, obj: Body, base: Steps, rule: str) -> Iterator[_Change]:
        """Yield changes of the fields that a rule reads."""
        hints = hints_of(rule)
        for path in hints.paths:
            steps = base + path
            constraints = constraints_at(self._root, steps)
            if constraints is None or not steps:
                continue
            yield _Change(steps, _removal(steps))
            for value in (*hints.constants, *(constraints.enum or ()), 0, 1, 1000, "z"):
                yield _Change(steps, _setting(steps, value))


def _places(obj: Body) -> list[Steps]:
    """Return the positions of an object that have a schema of its own kind."""
    found: list[Steps] = []
    pending: list[tuple[Steps, Any]] = [((name,), obj[name]) for name in obj if name not in ("metadata", "status")]
    while pending and len(found) < _MOST_PLACES:
        steps, value = pending.pop()
        if steps in (("apiVersion",), ("kind",)):
            continue
        found.append(steps)
        if isinstance(value, dict):
            pending += [((*steps, name), each) for name, each in value.items()]
        elif isinstance(value, list):
            pending += [((*steps, at), each) for at, each in enumerate(value)]
    return found


def _wrong(constraints: Constraints, value: Any) -> Iterator[Any]:
    """Yield values that a schema does not allow, each for one reason."""
    checks = constraints.checks
    match value:
        case bool():
            yield "true"
        case str():
            yield from _wrong_texts(constraints, value)
        case int() | float():
            yield from (each.minimum - 1 for each in checks if each.minimum is not None)
            yield from (each.maximum + 1 for each in checks if each.maximum is not None)
            yield from (value + 1 for each in checks if each.multiple_of)
            yield "text"
        case list():
            least, most = constraints.least("min_items"), constraints.most("max_items")
            if least:
                yield value[: least - 1]
            if most is not None and value and most < 100:
                yield value + [value[-1]] * (most + 1 - len(value))
            if value and (constraints.node.list_type in ("set", "map") or any(each.unique_items for each in checks)):
                yield [*value, value[-1]]
        case dict():
            if constraints.least("min_properties"):
                yield {}


def _wrong_texts(constraints: Constraints, value: str) -> Iterator[Any]:
    if constraints.enum is not None:
        yield f"{value}x"
    if constraints.patterns or constraints.format:
        yield from ("", f"{value}!", " ", "A B")
    least, most = constraints.least("min_length"), constraints.most("max_length")
    if least:
        yield value[: least - 1]
    if most is not None and most < 10_000:
        yield (value or "a") * (most + 1)
    yield 1


def _setting(steps: Steps, value: Any) -> Callable[[Body], bool]:
    def put_value(obj: Body) -> bool:
        if isinstance(value, float) and value.is_integer():
            return put(obj, steps, int(value))
        return put(obj, steps, deepcopy(value))

    return put_value


def _removal(steps: Steps) -> Callable[[Body], bool]:
    return lambda obj: remove(obj, steps)


def _single(errors: list[FieldError]) -> FieldError | None:
    """Return the error if there is one alone, apart from the note that rules were not evaluated."""
    real = [each for each in errors if "some validation rules were not checked" not in each.detail]
    return real[0] if len(real) == 1 else None
