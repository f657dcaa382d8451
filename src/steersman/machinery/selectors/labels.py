"""Label selectors of queries (`a=b,c in (d,e),!f`) and of `meta/v1 LabelSelector`: parsing, compiling, matching.

Follows k8s.io/apimachinery `labels`: the same grammar, canonical text and error messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from steersman.machinery.errors import field
from steersman.machinery.selectors.conjunction import Conjunction
from steersman.machinery.validation.formats import is_qualified_name, is_valid_label_value
from steersman.net.ascii import is_digits
from steersman.work.offloading import expect_offloading
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:
    from steersman.api.meta.v1 import LabelSelector

Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

IN: Final = "in"
NOT_IN: Final = "notin"
EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"
GREATER_THAN: Final = "gt"
LESS_THAN: Final = "lt"

_BINARY: Final = (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER_THAN, LESS_THAN)
_EXACT: Final = frozenset({EQUALS, DOUBLE_EQUALS, NOT_EQUALS})
_COMPARISONS: Final = frozenset({GREATER_THAN, LESS_THAN})
_SETS: Final = frozenset({IN, NOT_IN})
_UNARY: Final = (EXISTS, DOES_NOT_EXIST)
_SYMBOLS: Final = {GREATER_THAN: ">", LESS_THAN: "<"}
_FROM_API: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}


class SelectorError(ValueError):
    """The error for a malformed selector; the message is for the client."""


class Requirement(Struct, frozen=True):
    """A condition on one label. `new_requirement` creates a validated one."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in _SETS:
            return f"{self.key} {self.operator} ({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"

    def compile(self) -> Predicate:
        """Return a function that returns True if labels meet this requirement."""
        if self.operator in _UNARY:
            return _presence(self.key, self.operator)
        if self.operator in _COMPARISONS:
            return _comparison(self.key, self.operator, self.values)
        is_wanted = self.operator in (IN, EQUALS, DOUBLE_EQUALS)
        return _membership(self.key, self.values, wanted=is_wanted)


def _presence(key: str, operator: str) -> Predicate:
    if operator == EXISTS:
        return lambda labels: key in labels
    return lambda labels: key not in labels


def _membership(key: str, values: tuple[str, ...], *, wanted: bool) -> Predicate:
    if len(values) == 1:
        value = values[0]
        if wanted:
            return lambda labels: labels.get(key) == value
        return lambda labels: labels.get(key) != value
    among = frozenset(values)
    if wanted:
        return lambda labels: labels.get(key) in among
    return lambda labels: labels.get(key) not in among


def _comparison(key: str, operator: str, values: tuple[str, ...]) -> Predicate:
    bound = _int64(values[0]) if len(values) == 1 else None
    if bound is None:
        return lambda labels: False
    limit = bound
    greater = operator == GREATER_THAN

    def matches(labels: Labels) -> bool:
        text = labels.get(key)
        number = None if text is None else _int64(text)
        return number is not None and (number > limit if greater else number < limit)

    return matches


_integer: Final = re.compile(r"([+-]?)0*([0-9]{0,19})", re.ASCII).fullmatch


def _int64(text: str) -> int | None:
    """Return the decimal number in `text`, None if there is none or it does not fit in 64 bits."""
    parsed = _integer(text)
    if parsed is None or not is_digits(text[-1:]):
        return None
    number = int(parsed[1] + (parsed[2] or "0"))
    return number if -(1 << 63) <= number < 1 << 63 else None


def new_requirement(key: str, operator: str, values: Sequence[str] = (), path: field.Path | None = None) -> Requirement:
    """Return a validated requirement. Raises SelectorError with all field errors below `path` as its message."""
    path = path or field.Path()
    errors = []
    if messages := is_qualified_name(key):
        errors.append(field.invalid(path / "key", key, "; ".join(messages)))
    errors += _value_errors(operator, values, path)
    for index, value in enumerate(values):
        if messages := is_valid_label_value(value):
            errors.append(field.invalid((path / "values")[index][key], value, "; ".join(messages)))
    if errors:
        raise SelectorError(field.aggregate(errors))
    return Requirement(key, operator, tuple(values))


def _value_errors(operator: str, values: Sequence[str], path: field.Path) -> list[field.FieldError]:
    """Return the errors about the number of values, or about values that are not numbers."""
    where = path / "values"
    shown = list(values) or None
    if operator in _SETS:
        return [] if values else [field.invalid(where, shown, "for 'in', 'notin' operators, values set can't be empty")]
    if operator in _EXACT:
        text = "exact-match compatibility requires one single value"
        return [] if len(values) == 1 else [field.invalid(where, shown, text)]
    if operator in _UNARY:
        text = "values set must be empty for exists and does not exist"
        return [field.invalid(where, shown, text)] if values else []
    if operator in _COMPARISONS:
        text = "for 'Gt', 'Lt' operators, exactly one value is required"
        errors = [] if len(values) == 1 else [field.invalid(where, shown, text)]
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        return errors + [field.invalid(where[i], v, text) for i, v in enumerate(values) if _int64(v) is None]
    return [field.not_supported(path / "operator", operator, (*_BINARY, *_UNARY))]


_MANY: Final = 1_000
"""The number of requirements from which a selector must be built in a worker thread."""


class Selector(Conjunction[Requirement]):
    """A conjunction of requirements, sorted by key. `matches(labels)` returns True if labels meet them all."""

    __slots__ = ("matches",)

    matches: Predicate

    def __init__(self, requirements: Iterable[Requirement] = (), *, selectable: bool = True) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        if len(self.requirements) > _MANY:
            expect_offloading()
        self.selectable = selectable
        self.matches = _conjunction(self.requirements) if selectable else _nothing

    def add(self, *requirements: Requirement) -> Selector:
        """Return a selector with these requirements added."""
        return Selector((*self.requirements, *requirements)) if self.selectable else self

    def requires_exact_match(self, key: str) -> str | None:
        """Return the only value that label `key` may have, None if the selector does not restrict it to one."""
        for requirement in self.requirements:
            if requirement.key == key:
                exact = requirement.operator in (EQUALS, DOUBLE_EQUALS, IN) and len(requirement.values) == 1
                return requirement.values[0] if exact else None
        return None


def _everything(labels: Labels) -> bool:
    return True


def _nothing(labels: Labels) -> bool:
    return False


_FEW: Final = 4
"""The number of requirements up to which each is tested in turn; more are grouped by label first."""


def _conjunction(requirements: tuple[Requirement, ...]) -> Predicate:
    if not requirements:
        return _everything
    if len(requirements) == 1:
        return requirements[0].compile()
    if all(each.operator in (EQUALS, DOUBLE_EQUALS) for each in requirements):
        pairs = {(each.key, each.values[0]) for each in requirements}
        return lambda labels: pairs <= labels.items()
    if len(requirements) > _FEW:
        return _by_label(requirements)
    predicates = tuple(requirement.compile() for requirement in requirements)

    def matches(labels: Labels) -> bool:
        for predicate in predicates:  # noqa: SIM110 (a generator costs three times the loop)
            if not predicate(labels):
                return False
        return True

    return matches


class _Condition:
    """The conjunction of all requirements on one label."""

    __slots__ = ("_above", "_allowed", "_below", "_forbidden", "absent", "present")

    def __init__(self) -> None:
        self.present = False
        self.absent = False
        self._allowed: set[str] | None = None
        self._forbidden: set[str] = set()
        self._above = -math.inf
        self._below = math.inf

    def add(self, requirement: Requirement) -> None:
        operator, values = requirement.operator, requirement.values
        self.present = self.present or operator not in (NOT_IN, NOT_EQUALS, DOES_NOT_EXIST)
        if operator == DOES_NOT_EXIST:
            self.absent = True
        elif operator in (NOT_IN, NOT_EQUALS):
            self._forbidden.update(values)
        elif operator in (IN, EQUALS, DOUBLE_EQUALS):
            if self._allowed is None:
                self._allowed = set(values)
            else:
                self._allowed.intersection_update(values)
        elif operator in _COMPARISONS:
            bound = _int64(values[0]) if len(values) == 1 else None
            if bound is None:
                self._allowed = set()
            elif operator == GREATER_THAN:
                self._above = max(self._above, bound)
            else:
                self._below = min(self._below, bound)

    def takes(self, value: str) -> bool:
        """Return True if the label may have this value."""
        if self.absent or value in self._forbidden or not (self._allowed is None or value in self._allowed):
            return False
        if self._above == -math.inf and self._below == math.inf:
            return True
        number = _int64(value)
        return number is not None and self._above < number < self._below

    @property
    def cannot_be(self) -> bool:
        """Return True if neither a value of the label nor its absence is allowed."""
        return self.present and (self.absent or self._allowed == set())


def _by_label(requirements: Iterable[Requirement]) -> Predicate:
    """Return a predicate for many requirements.

    Its cost depends on the number of the object's labels or of the labels in the requirements, whichever is smaller.
    """
    conditions: dict[str, _Condition] = {}
    for requirement in requirements:
        conditions.setdefault(requirement.key, _Condition()).add(requirement)
    if any(condition.cannot_be for condition in conditions.values()):
        return _nothing
    needed = sum(condition.present for condition in conditions.values())

    def matches(labels: Labels) -> bool:
        if len(labels) < needed:
            return False
        if len(conditions) < len(labels):
            for key, expected in conditions.items():
                actual = labels.get(key)
                if expected.present if actual is None else not expected.takes(actual):
                    return False
            return True
        matched = 0
        for key, value in labels.items():
            condition = conditions.get(key)
            if condition is not None:
                if not condition.takes(value):
                    return False
                matched += condition.present
        return matched == needed

    return matches


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selectable=False)


def selector_from_set(labels: Labels) -> Selector:
    """Return a selector of objects that have all these labels, without validation."""
    return Selector(Requirement(key, EQUALS, (value,)) for key, value in labels.items())


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """Return the selector of a `meta/v1 LabelSelector`; None selects nothing. Raises SelectorError."""
    if selector is None:
        return NOTHING
    requirements = [new_requirement(key, EQUALS, (value,)) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        operator = _FROM_API.get(expression.operator)
        if operator is None:
            raise SelectorError(f"{field.quote(expression.operator)} is not a valid label selector operator")
        requirements.append(new_requirement(expression.key, operator, expression.values))
    return Selector(requirements)


def parse(text: str) -> Selector:
    """Parse a selector of a query parameter. Raises SelectorError."""
    if not text:
        return EVERYTHING
    plain = _plain_requirements(text) if len(text) >= _LONG else None
    return Selector(_Parser(text).requirements() if plain is None else plain)


_LONG: Final = 1024
"""Characters from which a faster parser for simple selectors is tried first."""
_NAME: Final = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_plain_term: Final = re.compile(rf"({_NAME})(?:(==?+|!=)((?:{_NAME})?))?").fullmatch
_other_term: Final = re.compile(r"(!?+)([-A-Za-z0-9_./]++)(?:(==?+|!=)([-A-Za-z0-9_.]*+))?+").fullmatch


def _plain_requirements(text: str) -> list[Requirement] | None:
    """Return the requirements of a selector without sets and spaces, several times faster than the full parser.

    Returns None if the selector is of another form or has an error.
    """
    requirements: list[Requirement] = []
    known: dict[str, Requirement | None] = {}
    for term in text.split(","):
        requirement = known.get(term)
        if requirement is None:
            requirement = known[term] = _plain_requirement(term)
            if requirement is None:
                return None
        requirements.append(requirement)
    return requirements


def _plain_requirement(term: str) -> Requirement | None:
    parts = _plain_term(term)
    if parts is not None:
        key, operator, value = parts.groups()
        return Requirement(key, operator, (value,)) if operator else Requirement(key, EXISTS)
    parts = _other_term(term)
    if parts is None:
        return None
    negated, key, operator, value = parts.groups()
    if is_qualified_name(key) or (negated and operator) or (value and is_valid_label_value(value)):
        return None
    if operator:
        return Requirement(key, operator, (value,))
    return Requirement(key, DOES_NOT_EXIST if negated else EXISTS)


# A NUL ends the token before it and is skipped. A NUL on its own ends the text.
_token: Final = late_pattern(
    r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])\0?|(?P<word>[^\0 \t\r\n=!(),<>]+)\0?|(?P<end>\0|\Z))"
)
_WORD: Final = "word"
_END: Final = "end"
_OPERATORS: Final = {
    IN: IN,
    NOT_IN: NOT_IN,
    EQUALS: EQUALS,
    DOUBLE_EQUALS: DOUBLE_EQUALS,
    NOT_EQUALS: NOT_EQUALS,
    ">": GREATER_THAN,
    "<": LESS_THAN,
}


class _Parser:
    """A parser of one token at a time. A token has a kind (`word`, `end`, or the symbol itself) and a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._kind = ""
        self._literal = ""
        self._advance()

    def _advance(self) -> tuple[str, str]:
        """Return the current token and move to the next. At the end of the text the position stays."""
        taken = self._kind, self._literal
        if self._kind == _END:
            return taken
        match = _token.match(self._text, self._position)
        assert match is not None  # any text starts with a symbol, a word, or its end
        self._position = match.end()
        self._kind = str(match.lastgroup)
        self._literal = "" if self._kind == _END else match[self._kind]
        if self._kind == "symbol":
            self._kind = self._literal
        return taken

    def requirements(self) -> Iterable[Requirement]:
        while True:
            if self._kind == _END:
                return
            if self._kind not in (_WORD, DOES_NOT_EXIST):
                raise SelectorError(f"found '{self._literal}', expected: !, identifier, or 'end of string'")
            try:
                requirement = self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            yield requirement
            kind, literal = self._advance()
            if kind == _END:
                return
            if kind != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            if self._kind not in (_WORD, DOES_NOT_EXIST):
                raise SelectorError(f"found '{self._literal}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        negated = self._kind == DOES_NOT_EXIST
        if negated:
            self._advance()
        kind, key = self._advance()
        if kind != _WORD:
            raise SelectorError(f"found '{key}', expected: identifier")
        if messages := is_qualified_name(key):
            raise SelectorError(str(field.invalid(field.Path(), key, "; ".join(messages))))
        if negated:
            return new_requirement(key, DOES_NOT_EXIST)
        if self._kind in (_END, ","):
            return new_requirement(key, EXISTS)
        _, literal = self._advance()
        operator = _OPERATORS.get(literal)
        if operator is None:
            raise SelectorError(f"found '{literal}', expected: {', '.join(_BINARY)}")
        values = self._values() if operator in _SETS else {self._exact_value()}
        return new_requirement(key, operator, sorted(values))

    def _exact_value(self) -> str:
        if self._kind in (_END, ","):
            return ""
        kind, literal = self._advance()
        if kind != _WORD:
            raise SelectorError(f"found '{literal}', expected: identifier")
        return literal

    def _values(self) -> set[str]:
        """Parse the values in parentheses; nothing between two commas is the empty value."""
        kind, literal = self._advance()
        if kind != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        if self._kind == ")":
            self._advance()
            return {""}
        if self._kind not in (_WORD, ","):
            raise SelectorError(f"found '{self._literal}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            kind, literal = self._advance()
            if kind == _WORD:
                values.add(literal)
                if self._kind not in (",", ")"):
                    raise SelectorError(f"found '{self._literal}', expected: ',' or ')'")
            elif kind == ",":
                if not values or self._kind in (",", ")"):
                    values.add("")
            else:
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")
            if self._kind == ")":
                self._advance()
                return values
