"""Repair of drawn objects: from the errors of a judge, each position that is wrong is drawn again, or changed.

Most objects need none, as they are drawn under the constraints of their schema. Rules in CEL, and rules that servers
have in code, are learned of by their errors. An error of a rule leads to the fields that the rule reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError

from .constraints import Constraints
from .errors import Unsatisfiable
from .hints import EACH, RulePath, hints_of
from .judges import Judge
from .places import MISSING, Steps, constraints_at, get, may_be_removed, put, remove, steps_of
from .values import DEEPEST, Values

_ROUNDS: Final = 12
"""The most passes over the errors of one object."""
_ERRORS: Final = 6
"""Errors that one pass mends."""
_MOVES: Final = 40
"""The most changes that are tried for one error of a rule."""
_ITEMS: Final = 3
"""Items of a list that a rule's `self.list[*]` stands for."""
_PLAIN: Final = ("a", "a.example.com", 1, 2, True, False)
"""Values that are tried whatever a rule says. Values that are drawn again may be the same ones."""

Body = dict[str, Any]
Move = Callable[[Body], bool]
"""Changes an object; returns False if there is nothing to change."""


@dataclass(slots=True)
class Counts:
    """Numbers of drawn objects: all, those that needed a repair, and those that could not be repaired."""

    drawn: int = 0
    repaired: int = 0
    given_up: int = 0


class Repair:
    """Mends objects of one schema."""

    def __init__(self, values: Values, root: Constraints, judge: Judge, old: Body | None = None) -> None:
        """`old` is the object that mended ones replace: `judge` knows it, too."""
        self._old = old
        self._values = values
        self._root = root
        self._judge = judge
        self.counts = Counts()
        self.patience: int | None = None
        """Objects that may be given up before there is an error; None for any number."""
        self.last_error = ""
        """The error of the last object that could not be repaired, with its rule."""

    def mended(self, draw: DrawFn, obj: Body) -> Body | None:
        """Return the object without errors, None if that fails. Raises Unsatisfiable if `patience` is over."""
        self.counts.drawn += 1
        errors = self._judge.errors(obj)
        if not errors:
            return obj
        self.counts.repaired += 1
        visits: dict[str, int] = {}
        for _ in range(_ROUNDS):
            for error in _distinct(errors)[:_ERRORS]:
                visits[error.field] = visits.get(error.field, 0) + 1
                obj = self._mend(draw, obj, error, visits[error.field])
            errors = self._judge.errors(obj)
            if not errors:
                return obj
        self.counts.given_up += 1
        self.last_error = f"{errors[0]}{self._rule(errors[0])}"
        if self.patience is not None and self.counts.given_up >= self.patience:
            raise Unsatisfiable(self.last_error)
        return None

    def _rule(self, error: FieldError) -> str:
        """Return the text of the rule behind an error, for a message."""
        steps, rules = self._rules_behind(steps_of(error.field, {}), error)
        return f" (of the rule {rules[0]!r})" if rules and steps is not None else ""

    def _mend(self, draw: DrawFn, obj: Body, error: FieldError, visit: int) -> Body:
        """Return the object after one change, or several that were tried, for an error."""
        steps = steps_of(error.field, obj)
        if visit > 2:
            return self._give_up_part(draw, obj, steps, visit)
        base, rules = self._rules_behind(steps, error)
        if rules:
            found = self._by_rule(draw, obj, base, rules, error)
            if found is not None:
                return found
        self._by_type(draw, obj, steps, error)
        return obj

    # Errors of fields

    def _by_type(self, draw: DrawFn, obj: Body, steps: Steps, error: FieldError) -> None:
        """Change the value of an error by the type of the error."""
        found = get(obj, steps)
        match error.type:
            case field.FORBIDDEN | field.DUPLICATE if may_be_removed(self._root, steps, obj):
                remove(obj, steps)
            case field.NOT_SUPPORTED if supported := _supported(error.detail):
                put(obj, steps, draw(st.sampled_from(supported)))
            case field.TOO_MANY if isinstance(found, list):
                del found[1:]
            case _:
                self._draw_again(draw, obj, steps)

    def _draw_again(self, draw: DrawFn, obj: Body, steps: Steps, *, small: bool = False) -> bool:
        constraints = constraints_at(self._root, steps)
        if not steps or constraints is None or self._values.feasibility.problem(constraints):
            return False
        shape = self._values.shape(constraints, DEEPEST if small else len(steps))
        return put(obj, steps, draw(shape.nested))

    def _give_up_part(self, draw: DrawFn, obj: Body, steps: Steps, visit: int) -> Body:
        """Remove the nearest part around an error that may be missing, or draw the least for it; later further out."""
        further = visit - 3
        for length in range(len(steps), 0, -1):
            if further > 0 and length > 1:
                further -= 1
                continue
            part = steps[:length]
            if self._old is not None and _restoring(part, self._old)(obj):
                return obj
            if may_be_removed(self._root, part, obj) and remove(obj, part):
                return obj
            if length < len(steps) and self._draw_again(draw, obj, part, small=True):
                return obj
        self._draw_again(draw, obj, ("spec",), small=True)
        return obj

    # Errors of rules

    def _rules_behind(self, steps: Steps, error: FieldError) -> tuple[Steps, list[str]]:
        """Return the rules that may have made an error, and the position that has them."""
        for length in range(len(steps), -1, -1):
            constraints = constraints_at(self._root, steps[:length])
            if constraints is None:
                continue
            found = [
                str(rule.get("rule", ""))
                for rule in constraints.node.rules
                if rule.get("messageExpression") or _names(rule, error)
            ]
            if found:
                return steps[:length], found
        return steps, []

    def _by_rule(self, draw: DrawFn, obj: Body, base: Steps, rules: list[str], error: FieldError) -> Body | None:
        """Try changes of the fields that the rules read, and return the first object with fewer errors."""
        moves = [move for rule in rules for move in self._moves(draw, obj, base, rule)]
        if not moves:
            return None
        before = self._judge.errors(obj)
        if error not in before:
            return obj  # an earlier change has mended it
        first = draw(st.integers(0, len(moves) - 1))
        other: Body | None = None
        for move in (moves[first:] + moves[:first])[:_MOVES]:
            tried = deepcopy(obj)
            if not move(tried):
                continue
            errors = self._judge.errors(tried)
            if len(errors) < len(before):
                return tried
            if other is None and len(errors) == len(before) and error not in errors:
                other = tried
        return other

    def _moves(self, draw: DrawFn, obj: Body, base: Steps, rule: str) -> Iterator[Move]:
        hints = hints_of(rule)
        positions = [base + each for path in hints.paths for each in _expanded(get(obj, base), path)]
        for steps in positions:
            constraints = constraints_at(self._root, steps)
            if constraints is None or not steps:
                continue
            if self._old is not None:
                yield _restoring(steps, self._old)
                yield _growing(steps, self._old)
            yield self._again(draw, steps)
            if may_be_removed(self._root, steps, obj):
                yield _removal(steps)
            for value in (*hints.constants, *_others(obj, positions, steps), *_PLAIN):
                if _fits(constraints, value):
                    yield _setting(steps, value)
            found = get(obj, steps)
            if isinstance(found, list) and found:
                yield _shortening(steps, constraints.least("min_items"))
            if constraints.node.types == ("array",) and not found:
                yield self._again(draw, (*steps, 0))
        if self._old is not None and base:
            yield _restoring(base, self._old)

    def _again(self, draw: DrawFn, steps: Steps) -> Move:
        return lambda obj: self._draw_again(draw, obj, steps)


def _removal(steps: Steps) -> Move:
    return lambda obj: remove(obj, steps)


def _setting(steps: Steps, value: Any) -> Move:
    return lambda obj: get(obj, steps) != value and put(obj, steps, deepcopy(value))


def _restoring(steps: Steps, old: Body) -> Move:
    """Return the change that gives a position its value of the old object, if it had one."""

    def restore(obj: Body) -> bool:
        value = get(old, steps)
        if value is MISSING:
            return not isinstance(steps[-1], int) and remove(obj, steps)
        return get(obj, steps) != value and put(obj, steps, deepcopy(value))

    return restore


def _growing(steps: Steps, old: Body) -> Move:
    """Return the change that adds to the old value, as rules often allow values only to grow."""

    def grow(obj: Body) -> bool:
        value, new = get(old, steps), get(obj, steps)
        if isinstance(value, list) and isinstance(new, list):
            return put(obj, steps, deepcopy([*value, *(each for each in new if each not in value)]))
        if isinstance(value, dict) and isinstance(new, dict):
            return put(obj, steps, deepcopy({**new, **value}))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return put(obj, steps, value + 1)
        return False

    return grow


def _shortening(steps: Steps, least: int) -> Move:
    def shorten(obj: Body) -> bool:
        found = get(obj, steps)
        if not isinstance(found, list) or len(found) <= max(least, 1):
            return False
        del found[max(least, 1) :]
        return True

    return shorten


def _others(obj: Body, positions: list[Steps], steps: Steps) -> Iterator[Any]:
    """Yield the scalars at the other positions that a rule reads: rules compare fields with each other."""
    for each in positions:
        value = get(obj, each)
        if each != steps and isinstance(value, str | int | float):
            yield value


def _fits(constraints: Constraints, value: Any) -> bool:
    """Return True if a constant has the type of a position and is in its enumeration."""
    if constraints.enum is not None:
        return value in constraints.enum
    kind = {bool: "boolean", str: "string", int: "integer", float: "number"}.get(value.__class__)
    types = constraints.node.types
    return kind in types or (kind == "integer" and "number" in types)


def _expanded(value: Any, path: RulePath) -> Iterator[Steps]:
    """Yield the positions of a path of a rule; EACH stands for the first items or members."""
    found: list[tuple[Any, Steps]] = [(value, ())]
    for step in path:
        below: list[tuple[Any, Steps]] = []
        for each, steps in found:
            if step != EACH:
                below.append((get(each, (step,)), (*steps, step)))
            elif isinstance(each, list):
                below += [(item, (*steps, at)) for at, item in enumerate(each[:_ITEMS])]
            elif isinstance(each, dict):
                below += [(each[name], (*steps, name)) for name in list(each)[:_ITEMS]]
        found = below
    for _, steps in found:
        yield steps


def _names(rule: Any, error: FieldError) -> bool:
    """Return True if an error has the text of a rule."""
    text = str(rule.get("message") or rule.get("rule", "")).strip()
    return bool(text) and text in error.detail


def _distinct(errors: list[FieldError]) -> list[FieldError]:
    """Return the first error of each field."""
    return list({each.field: each for each in reversed(errors)}.values())[::-1]


def _supported(detail: str) -> list[str]:
    """Return the values that the message of an unsupported value lists."""
    _, _, listed = detail.partition("supported values: ")
    return [part.strip('"') for part in listed.split(", ")] if listed else []
