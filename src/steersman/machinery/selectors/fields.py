"""Field selectors of queries (`metadata.name=a,status.phase!=Running`): parsing, compiling, matching.

Follows k8s.io/apimachinery `fields`: the same grammar, escapes and error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from steersman.machinery.selectors.conjunction import Conjunction

Fields = Mapping[str, str]
Predicate = Callable[[Fields], bool]
Transform = Callable[[str, str], tuple[str, str]]
"""A function that replaces the field and value of a requirement; two empty texts drop the requirement. It may raise."""

EQUALS: Final = "="
NOT_EQUALS: Final = "!="


class SelectorError(ValueError):
    """The error for a malformed selector; the message is for the client."""


class Requirement(Struct, frozen=True):
    """A field that must, or must not, have a value. The operator is `=` or `!=`."""

    field: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{escape_value(self.value)}"

    def compile(self) -> Predicate:
        """Return a function that returns True if fields meet this requirement; a missing field counts as empty."""
        field, value = self.field, self.value
        if self.operator == EQUALS:
            return lambda fields: fields.get(field, "") == value
        return lambda fields: fields.get(field, "") != value


class Selector(Conjunction[Requirement]):
    """A conjunction of requirements. `matches(fields)` returns True if fields meet them all."""

    __slots__ = ("matches",)

    matches: Predicate

    def __init__(self, requirements: Iterable[Requirement] = (), *, selectable: bool = True) -> None:
        self.requirements = tuple(requirements)
        self.selectable = selectable
        self.matches = _conjunction(self.requirements) if selectable else _nothing

    def requires_exact_match(self, field: str) -> str | None:
        """Return the only value that `field` may have, None if the selector does not restrict it to one."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == EQUALS:
                return requirement.value
        return None

    def transform(self, function: Transform) -> Selector:
        """Return a selector whose fields and values have gone through `function`, which may raise."""
        return Selector(_transformed(self.requirements, function)) if self.selectable else self


def _transformed(requirements: Iterable[Requirement], function: Transform) -> Iterator[Requirement]:
    for requirement in requirements:
        field, value = function(requirement.field, requirement.value)
        if field or value:
            yield Requirement(field, requirement.operator, value)


def _everything(fields: Fields) -> bool:
    return True


def _nothing(fields: Fields) -> bool:
    return False


def _conjunction(requirements: tuple[Requirement, ...]) -> Predicate:
    if not requirements:
        return _everything
    if len(requirements) == 1:
        return requirements[0].compile()
    if len(requirements) > _FEW:
        return _by_field(requirements)
    predicates = tuple(requirement.compile() for requirement in requirements)
    return lambda fields: all(predicate(fields) for predicate in predicates)


_FEW: Final = 4
"""The number of requirements up to which each is tested in turn; more are grouped by field first."""


def _by_field(requirements: Iterable[Requirement]) -> Predicate:
    """Return a predicate for many requirements whose cost only depends on the number of the object's fields.

    A missing field counts as empty, so a requirement needs the field only if it demands another value.
    """
    expected: dict[str, str] = {}
    unwanted: dict[str, set[str]] = {}
    for each in requirements:
        if each.operator == NOT_EQUALS:
            unwanted.setdefault(each.field, set()).add(each.value)
        elif expected.setdefault(each.field, each.value) != each.value:
            return _nothing
    needed = {field for field, value in expected.items() if value}
    needed.update(field for field, values in unwanted.items() if "" in values)
    if any(value in unwanted.get(field, ()) for field, value in expected.items()):
        return _nothing

    def matches(fields: Fields) -> bool:
        if len(fields) < len(needed):
            return False
        matched = 0
        for field, value in fields.items():
            if expected.get(field, value) != value or value in unwanted.get(field, ()):
                return False
            matched += field in needed
        return matched == len(needed)

    return matches


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selectable=False)


def one_term_equal_selector(field: str, value: str) -> Selector:
    """Return a selector of objects with `value` in `field`."""
    return Selector((Requirement(field, EQUALS, value),))


_ESCAPES: Final = str.maketrans({"\\": r"\\", ",": r"\,", "=": r"\="})


def escape_value(value: str) -> str:
    """Return `value` escaped for the text of a selector."""
    return value.translate(_ESCAPES)


def unescape_value(text: str) -> str:
    """Return the value of escaped text in a selector. Raises SelectorError."""
    if not any(special in text for special in "\\,="):
        return text
    value = []
    characters = iter(text)
    for char in characters:
        if char == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            value.append(escaped)
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            value.append(char)
    return "".join(value)


def parse(text: str) -> Selector:
    """Parse a selector of a query parameter. Raises SelectorError."""
    if not text:
        return EVERYTHING
    requirements = (_requirement(term, text) for term in sorted(_terms(text)) if term)
    return Selector(_transformed(requirements, lambda field, value: (field, value)))


def _terms(text: str) -> Iterator[str]:
    """Yield the parts of `text` between commas that are not escaped by a backslash."""
    if "\\" not in text:
        yield from text.split(",")
        return
    start = 0
    escaped = False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _requirement(term: str, text: str) -> Requirement:
    """Parse a term; its first operator splits it, because fields have no escapes. Raises SelectorError."""
    equals = term.find("=")
    if equals < 0:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    if equals > 0 and term[equals - 1] == "!":
        return Requirement(term[: equals - 1], NOT_EQUALS, unescape_value(term[equals + 1 :]))
    value = term[equals + 1 :].removeprefix("=")
    return Requirement(term[:equals], EQUALS, unescape_value(value))
