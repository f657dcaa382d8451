"""Validation errors of values, in upstream's words and order (k8s.io/kube-openapi `pkg/validation/validate`).

Upstream's peculiarities are kept: the errors of anyOf and oneOf are those of the alternative that passed the most
checks (the methods count passed checks as upstream does), the same error is reported once, and numbers are compared
with limits in Go's arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path, go_json, quote
from steersman.work.threads import paced

from .correlation import Correlated
from .fast_validation import are_unique, has_pattern, is_in
from .formats import FORMATS, normalized
from .nodes import NULLABLE, Checks, Node
from .numbers import (
    fits,
    is_json_integer,
    maximum_text,
    minimum_text,
    multiple_text,
    native,
    number_type,
    range_text,
)
from .patterns import pattern_error

_MOST_TEXT: Final = 16 << 20
"""The most characters of messages about one object, after which validation stops: each message has keys that clients
choose.
"""
_TYPES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_NUMBER_FORMATS: Final = {int: "int64", float: "float64"}

PathLink = tuple[Any, str] | None
"""The path to a value as a linked list: the path to the parent and the last step; None for the root. It is printed only
when it is needed.
"""


def _name(link: PathLink) -> str:
    steps: list[str] = []
    while link is not None:
        link, step = link
        steps.append(step)
    return "".join(reversed(steps))


class Failure(NamedTuple):
    """A validation error. `name` is the path as upstream prints it, None for an error without a path."""

    name: str | None
    type: str
    value: Any
    detail: str
    text: str
    """The error in upstream's own form, by which duplicates are detected."""
    limit: int = -1
    allowed: tuple[Any, ...] = ()

    def error(self, path: Path) -> FieldError:
        """Return the failure as a field error below a path."""
        if self.name is None:
            return field.invalid(path, "", self.text)
        place = path.child(self.name.removeprefix(".")) if self.name not in ("", ".") else path
        match self.type:
            case field.REQUIRED:
                return field.required(place)
            case field.NOT_SUPPORTED:
                names = [each if isinstance(each, str) else go_json(each) for each in self.allowed]
                return field.not_supported(place, self.value, names)
            case field.TOO_LONG:
                return field.too_long(place, self.limit)
            case field.TOO_MANY:
                return field.too_many(place, self.value, self.limit)
        return FieldError(self.type, str(place), self.value, self.detail)


Found = dict[str, Failure]
"""Failures by their texts."""


def validation_errors(node: Node, value: Any, path: Path, correlated: Correlated | None = None) -> Iterator[FieldError]:
    """Yield the errors of a value; with `correlated` without those of unchanged parts."""
    found: Found = {}
    _Validation().validate(node, value, None, found, correlated)
    return (failure.error(path) for failure in found.values())


class _Validation:
    """The validation of one value. Its methods add to `found` and return the number of passed checks."""

    def __init__(self) -> None:
        self._text_budget = _MOST_TEXT

    def validate(self, node: Node, value: Any, link: PathLink, found: Found, correlated: Correlated | None) -> int:
        """Validate a value and its parts; errors of an unchanged value are ignored."""
        if correlated is None:
            return self._validate(node, value, link, found, None)
        own: Found = {}
        passed = self._validate(node, value, link, own, correlated)
        if own and not correlated.is_same():
            found.update(own)
        return passed

    def _validate(self, node: Node, value: Any, link: PathLink, found: Found, correlated: Correlated | None) -> int:
        if self._text_budget < 0:
            return 0
        kind = value.__class__
        checks = node.checks
        if value is None:
            passed = self._validate_type(node, value, link, found)
            if checks is not None and checks.enum is not None:
                self._add_not_allowed(checks, value, link, found)
            return passed
        if kind is int or kind is float:
            value = native(value)
            kind = value.__class__
        passed = 4  # junctors, enum, the kind of the value, and the node as a whole
        if node.types or node.format:
            passed += 1 + self._validate_type(node, value, link, found)
        passed += 1 if checks is None else self._validate_junctors(checks, value, link, found)
        if kind is str:
            passed += self._validate_text(node, value, link, found)
        elif kind is int or kind is float:
            passed += 1
            self._validate_number(node, value, link, found)
        elif kind is list:
            passed += self._validate_list(node, value, link, found, correlated)
        elif kind is bool:
            passed -= 1  # upstream has no validator for this kind alone
        if checks is not None and checks.enum is not None and not is_in(checks, value):
            self._add_not_allowed(checks, value, link, found)
        if kind is dict:
            passed += self._validate_object(node, value, link, found, correlated)
        return passed

    def _add(
        self, found: Found, name: str, value: Any, text: str, *, type: str = field.INVALID, limit: int = -1
    ) -> None:
        if text not in found:
            self._text_budget -= len(text) + len(name)
            found[text] = Failure(name, type, value, text, text, limit)

    def _add_placeless(self, found: Found, text: str) -> None:
        if text not in found:
            self._text_budget -= len(text)
            found[text] = Failure(None, field.INVALID, "", text, text)

    def _add_not_allowed(self, checks: Checks, value: Any, link: PathLink, found: Found) -> None:
        assert checks.enum is not None
        name = _name(link)
        text = f"{name} in body should be one of {go_json(checks.enum)}"
        if text not in found:
            self._text_budget -= len(text)
            found[text] = Failure(name, field.NOT_SUPPORTED, value, "", text, allowed=checks.enum)

    # Types

    def _validate_type(self, node: Node, value: Any, link: PathLink, found: Found) -> int:
        """Validate the type of the value; return 1 if it is allowed, otherwise 0."""
        wrong = _type_wrong(node, value)
        if wrong is None:
            return 1
        expected, actual = wrong
        name = _name(link)
        text = f"{name} in body must be of type {expected}: {quote(actual)}"
        self._add(found, name, actual, text, type=field.TYPE_INVALID)
        return 0

    # Junctors

    def _alternatives(self, nodes: tuple[Node, ...], value: Any, link: PathLink) -> Iterator[tuple[int, Found]]:
        for node in nodes:
            own: Found = {}
            yield self._validate(node, value, link, own, None), own

    def _validate_junctors(self, checks: Checks, value: Any, link: PathLink, found: Found) -> int:
        passed = 1
        if checks.any_of:
            passed += self._validate_any_of(checks, value, link, found)
        if checks.one_of:
            passed += self._validate_one_of(checks, value, link, found)
        if checks.all_of:
            passed += self._validate_all_of(checks, value, link, found)
        if checks.negated is not None:
            own: Found = {}
            self._validate(checks.negated, value, link, own, None)
            if not own:
                self._add_placeless(found, f"{quote(_name(link))} must not validate the schema (not)")
        return passed

    def _validate_any_of(self, checks: Checks, value: Any, link: PathLink, found: Found) -> int:
        best, failures = -1, Found()
        for passed, own in self._alternatives(checks.any_of, value, link):
            if not own:
                return passed
            if passed > best:
                best, failures = passed, own
        self._add_placeless(found, f"{quote(_name(link))} must validate at least one schema (anyOf)")
        _merge(found, failures)
        return best

    def _validate_one_of(self, checks: Checks, value: Any, link: PathLink, found: Found) -> int:
        valid = first = 0
        best, failures = -1, Found()
        for passed, own in self._alternatives(checks.one_of, value, link):
            if not own:
                valid += 1
                first = first if valid > 1 else passed
            elif not valid and passed > best:
                best, failures = passed, own
        if valid == 1:
            return first
        said = f"Found {valid} valid alternatives" if valid else "Found none valid"
        self._add_placeless(found, f"{quote(_name(link))} must validate one and only one schema (oneOf). {said}")
        if valid:
            return 0
        _merge(found, failures)
        return best

    def _validate_all_of(self, checks: Checks, value: Any, link: PathLink, found: Found) -> int:
        valid = total = 0
        for passed, own in self._alternatives(checks.all_of, value, link):
            valid += not own
            total += passed
            _merge(found, own)
        if valid < len(checks.all_of):
            said = "" if valid else ". None validated"
            self._add_placeless(found, f"{quote(_name(link))} must validate all the schemas (allOf){said}")
        return total

    # Values by their kinds

    def _validate_text(self, node: Node, value: str, link: PathLink, found: Found) -> int:
        checks = node.checks
        if checks is not None:
            self._validate_text_checks(checks, value, link, found)
        check = FORMATS.get(normalized(node.format)) if node.format else None
        if check is None:
            return 0
        if not check(value):
            name = _name(link)
            text = f"{name} in body must be of type {node.format}: {quote(value)}"
            self._add(found, name, value, text, type=field.TYPE_INVALID)
        return 1

    def _validate_text_checks(self, checks: Checks, value: str, link: PathLink, found: Found) -> None:
        """Validate length and pattern; only the first error is reported."""
        name = _name(link)
        if checks.max_length is not None and len(value) > checks.max_length:
            text = f"{name} in body should be at most {checks.max_length} chars long"
            self._add(found, name, value, text, type=field.TOO_LONG, limit=checks.max_length)
        elif checks.min_length is not None and len(value) < checks.min_length:
            self._add(found, name, value, f"{name} in body should be at least {checks.min_length} chars long")
        elif checks.pattern and not has_pattern(checks.pattern, value):
            wrong = pattern_error(checks.pattern)
            shown = f"{checks.pattern}, but pattern is invalid: {wrong}" if wrong else checks.pattern
            self._add(found, name, value, f"{name} in body should match '{shown}'")

    def _validate_number(self, node: Node, value: int | float, link: PathLink, found: Found) -> None:
        kind, format = number_type(node)
        checks = node.checks
        if kind and not fits(value, kind, format):
            self._add_placeless(found, range_text("Checked", kind, format, _name(link)))
        if checks is None:
            return
        name = _name(link)
        if checks.multiple_of is not None:
            fitting = fits(checks.multiple_of, kind, format)
            if not fitting:
                self._add_placeless(found, range_text("MultipleOf", kind, format, name))
            self._add_wrong(found, name, multiple_text(value, checks.multiple_of, fitting, name))
        if checks.minimum is not None:
            fitting = fits(checks.minimum, kind, format)
            if not fitting:
                self._add_placeless(found, range_text("Minimum boundary", kind, format, name))
            self._add_wrong(found, name, minimum_text(value, checks, fitting, name))
        if checks.maximum is not None:
            fitting = fits(checks.maximum, kind, format)
            if not fitting:
                self._add_placeless(found, range_text("Maximum boundary", kind, format, name))
            self._add_wrong(found, name, maximum_text(value, checks, fitting, name))

    def _add_wrong(self, found: Found, name: str, wrong: tuple[str, Any] | None) -> None:
        if wrong is not None:
            self._add(found, name, wrong[1], wrong[0])

    def _validate_list(
        self, node: Node, value: list[Any], link: PathLink, found: Found, correlated: Correlated | None
    ) -> int:
        passed = 1
        if node.items is not None:
            for number, item in enumerate(paced(value)):
                before = None if correlated is None else correlated.index(number)
                passed += self.validate(node.items, item, (link, f"[{number}]"), found, before)
        checks = node.checks
        if checks is None:
            return passed
        count = len(value)
        if checks.min_items is not None and count < checks.min_items:
            name = _name(link)
            self._add(found, name, count, f"{name} in body should have at least {checks.min_items} items")
        if checks.max_items is not None and count > checks.max_items:
            name = _name(link)
            text = f"{name} in body should have at most {checks.max_items} items"
            self._add(found, name, count, text, type=field.TOO_MANY, limit=checks.max_items)
        if checks.unique_items and not are_unique(value):
            name = _name(link)
            self._add(found, name, "", f"{name} in body shouldn't contain duplicates")
        return passed

    def _validate_object(
        self, node: Node, value: dict[str, Any], link: PathLink, found: Found, correlated: Correlated | None
    ) -> int:
        if node.checks is not None:
            self._validate_count(node.checks, value, link, found)
        passed = self._validate_additional(node, value, link, found, correlated)
        # upstream walks the properties of the schema in random order, so the object's order is as good
        for name, item in paced(value.items()):
            child = node.properties.get(name)
            if child is not None:
                step = (link, f".{name}") if link is not None else (None, name)
                passed += self.validate(child, item, step, found, _before(correlated, link, name))
        if node.checks is not None:
            for name in node.checks.required:
                if name not in value:
                    place = f"{_name(link)}.{name}"
                    self._add(found, place, "", f"{place} in body is required", type=field.REQUIRED)
        return passed

    def _validate_count(self, checks: Checks, value: dict[str, Any], link: PathLink, found: Found) -> None:
        count = len(value)
        if checks.min_properties is not None and count < checks.min_properties:
            name = _name(link)
            self._add(found, name, count, f"{name} in body should have at least {checks.min_properties} properties")
        if checks.max_properties is not None and count > checks.max_properties:
            name = _name(link)
            text = f"{name} in body should have at most {checks.max_properties} properties"
            self._add(found, name, count, text, type=field.TOO_MANY, limit=checks.max_properties)

    def _validate_additional(
        self, node: Node, value: dict[str, Any], link: PathLink, found: Found, correlated: Correlated | None
    ) -> int:
        """Validate members that are not properties of the schema."""
        additional = node.additional
        passed = 0
        if additional is False:
            for name in paced(value.keys()):
                if name not in node.properties:
                    place = _name(link)
                    self._add(found, place, name, f"{place}.{name} in body is a forbidden property")
        elif isinstance(additional, Node):
            for name, item in paced(value.items()):
                if name not in node.properties:
                    before = _before(correlated, link, name)
                    passed += self.validate(additional, item, (link, f".{name}"), found, before)
        return passed


def _before(correlated: Correlated | None, link: PathLink, name: str) -> Correlated | None:
    if correlated is None or (link is None and name in ("apiVersion", "kind")):
        return None  # both objects were converted to the same version, so these are equal
    return correlated.key(name)


def _merge(found: Found, more: Found) -> None:
    for text, failure in more.items():
        found.setdefault(text, failure)


def _type_wrong(node: Node, value: Any) -> tuple[str, str] | None:
    """Return the expected and the actual type if they do not match, otherwise None."""
    types, format = node.types, node.format
    if value is None:
        return (",".join(types), "null") if types and not node.traits & NULLABLE else None
    kind = value.__class__
    actual = _TYPES[kind]
    goes = actual in types
    if not goes and kind is float:
        goes = "integer" in types and is_json_integer(value)
    if not goes and kind is int:
        goes = "number" in types
    is_number = "number" in types or "integer" in types
    if format:
        number_format = _NUMBER_FORMATS.get(kind, "")
        if kind is not str and kind is not list:
            if not goes and number_format != format:
                return format, number_format
        elif not is_number:
            return None
    return None if goes else (",".join(types), actual)
