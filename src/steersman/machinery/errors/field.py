"""Field paths and field errors: validators yield them and clients read them in `details.causes`.

Follows k8s.io/apimachinery `util/validation/field`: the same error types, the same wording, the same way to print
values, since clients and people match on these texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.machinery.go.escaping import escaped
from steersman.machinery.go.printable import is_plainly_printable, unprintable
from steersman.machinery.sorted_maps import presorted
from steersman.work.patterns import late_pattern
from steersman.work.threads import give_way

REQUIRED: Final = "FieldValueRequired"
INVALID: Final = "FieldValueInvalid"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
DUPLICATE: Final = "FieldValueDuplicate"
NOT_FOUND: Final = "FieldValueNotFound"
FORBIDDEN: Final = "FieldValueForbidden"
TOO_LONG: Final = "FieldValueTooLong"
TOO_SHORT: Final = "FieldValueTooShort"
TOO_MANY: Final = "FieldValueTooMany"
TOO_FEW: Final = "FieldValueTooFew"
TYPE_INVALID: Final = "FieldValueTypeInvalid"
INTERNAL: Final = "InternalError"

_TEXTS: Final = {
    REQUIRED: "Required value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    DUPLICATE: "Duplicate value",
    NOT_FOUND: "Not found",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_SHORT: "Too short",
    TOO_MANY: "Too many",
    TOO_FEW: "Too few",
    TYPE_INVALID: "Invalid value",
    INTERNAL: "Internal error",
}
_WITHOUT_VALUE: Final = frozenset({REQUIRED, FORBIDDEN, TOO_LONG, TOO_SHORT, INTERNAL})


class Path:
    """The path of a field: `Path("spec", "ports")[0] / "name"` prints as `spec.ports[0].name`.

    Validators build the same paths again and again. So a path caches the paths below it by field names that appear in
    the code, at most 128, and the first four list items. Paths by map keys are never cached, because clients choose the
    keys.

    `Path("")` is upstream's `NewPath("")` and prints as `[]`; `Path()` is upstream's nil and prints as `<nil>`.
    """

    __slots__ = ("_below", "_text")

    _text: str
    _below: dict[str | int, Path]

    def __new__(cls, *names: str) -> Path:
        return _root(names)

    def __truediv__(self, name: str) -> Path:
        try:
            return self._below[name]
        except KeyError:
            path = _path(f"{self._text}.{name}" if self._text else name)
        if len(self._below) < _KEPT_BELOW:
            self._below[name] = path
        return path

    def child(self, *names: str) -> Path:
        """Return the path of the field below this one by these names, without caching it."""
        return _path(".".join((self._text, *names)) if self._text else ".".join(names))

    def __getitem__(self, index: int | str) -> Path:
        """Return the path of an item of a list (by number) or of a map (by key)."""
        if index.__class__ is not int or index >= _KEPT_ITEMS:
            give_way()  # a validator makes one path for each item, so this is where a long list yields
            return _path(f"{self._text}[{index}]")
        try:
            return self._below[index]
        except KeyError:
            path = self._below[index] = _path(f"{self._text}[{index}]")
        return path

    def __str__(self) -> str:
        return self._text or "<nil>"

    def __repr__(self) -> str:
        return f"Path({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


_KEPT_BELOW: Final = 128
_KEPT_ITEMS: Final = 4


def _path(text: str) -> Path:
    path = object.__new__(Path)
    path._text = text
    path._below = {}
    return path


@lru_cache(1024)
def _root(names: tuple[str, ...]) -> Path:
    return _path("[]" if names == ("",) else ".".join(names))


class Verbatim(str):
    """A value that is printed unquoted, for upstream's types that print without JSON names."""

    __slots__ = ()


class _Omitted:
    """The type of OMITTED, which marks a value that is not printed."""

    __slots__ = ()


OMITTED: Final = _Omitted()


class FieldError(Struct, frozen=True):
    """An error of one field.

    `type` is one of the constants above, `field` the printed path. `value` is the rejected value, printed as upstream
    prints it. `detail` is the rest of the message.
    """

    type: str
    field: str
    value: Any = ""
    detail: str = ""

    @property
    def body(self) -> str:
        """Return the text after the field's name, which is the `message` of a cause."""
        text = _TEXTS[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text = f"{text}: {print_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def print_value(value: Any) -> str:
    """Return `value` as upstream prints it in an error: text quoted, null for None, composite values as JSON."""
    if isinstance(value, str):
        return str(value) if isinstance(value, Verbatim) else quote(value)
    if isinstance(value, float):
        return format_float(value)
    return go_json(value)


def go_json(value: Any) -> str:
    """Return `value` as Go's JSON encoder writes it: keys of maps sorted, the characters special to HTML escaped."""
    value = presorted(value)
    text = _json.encode(value).decode()
    if _FLOATS.search(text):
        text = _json.encode(with_go_floats(value)).decode()
    return escaped(text, _HTML, lambda char: f"\\u{ord(char):04x}")


_json: Final = msgspec.json.Encoder(order="deterministic")
_HTML: Final = late_pattern("[<>&\u2028\u2029]")
_FLOATS: Final = late_pattern(r"[0-9](?:\.0|e)")
"""A pattern that finds floats which Go writes differently from msgspec. It may match inside a string, too, which only
costs a second encoding.
"""


def with_go_floats(value: Any) -> Any:
    """Return plain data with each float replaced by the raw JSON that Go's encoder writes for it."""
    if isinstance(value, dict):
        return {name: with_go_floats(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [with_go_floats(item) for item in value]
    return msgspec.Raw(json_float(value).encode()) if isinstance(value, float) else value


def json_float(value: float) -> str:
    """Return `value` as Go's JSON encoder writes a float64: with an exponent below 1e-6 and from 1e21 on."""
    magnitude = abs(value)
    if magnitude == 0 or 1e-6 <= magnitude < 1e21:
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:]))
    exponent = Decimal(repr(value)).adjusted()
    return f"{'-' if sign else ''}{digits[0]}{f'.{fraction}' if fraction else ''}e{exponent:+d}"


def format_float(value: float) -> str:
    """Return `value` as Go prints a float64 (%v): the shortest form, with an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    text = repr(value)
    magnitude = abs(value)
    if magnitude == 0 or 1e-4 <= magnitude < 1e6:
        return f"{Decimal(text):f}".removesuffix(".0")
    sign, digits, _ = Decimal(text).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:]))
    point = f".{fraction}" if fraction else ""
    return f"{'-' if sign else ''}{digits[0]}{point}e{math.floor(math.log10(magnitude)):+03d}"


def quote(text: str) -> str:
    """Return `text` in double quotes with Go's escapes (strconv.Quote)."""
    if is_plainly_printable(text):
        return _IN_JSON(text).decode() if '"' in text or "\\" in text else f'"{text}"'
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(plain, _CONTROL if plain.isascii() else unprintable(), _escape)}"'


_IN_JSON: Final = msgspec.json.Encoder().encode
"""Encodes printable text exactly as Go quotes it, faster than replacing characters in Python."""
_CONTROL: Final = late_pattern("[\x00-\x1f\x7f]")
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def _escape(char: str) -> str:
    """Return Go's escape of a character that is not printed as it is."""
    if (escape := _ESCAPES.get(char)) is not None:
        return escape
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def required(path: Path, detail: str = "") -> FieldError:
    """Return the error of a required field that is missing."""
    return FieldError(REQUIRED, str(path), "", detail)


def invalid(path: Path, value: Any, detail: str) -> FieldError:
    """Return the error of a value that breaks a rule; `detail` names the rule."""
    return FieldError(INVALID, str(path), value, detail)


def not_supported(path: Path, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error of a value that is not among the `supported` ones."""
    names = ", ".join(quote(each) for each in supported)
    return FieldError(NOT_SUPPORTED, str(path), value, f"supported values: {names}" if names else "")


def duplicate(path: Path, value: Any) -> FieldError:
    """Return the error of a value that must be unique in its list and is not."""
    return FieldError(DUPLICATE, str(path), value)


def not_found(path: Path, value: Any) -> FieldError:
    """Return the error of a reference to something that does not exist."""
    return FieldError(NOT_FOUND, str(path), value)


def forbidden(path: Path, detail: str) -> FieldError:
    """Return the error of a field that may not be set, or not be changed, here."""
    return FieldError(FORBIDDEN, str(path), "", detail)


def too_long(path: Path, maximum: int) -> FieldError:
    """Return the error of a text of more than `maximum` bytes.

    A `maximum` below 0 leaves the number out of the message.
    """
    detail = f"may not be more than {_counted(maximum, 'byte')}" if maximum >= 0 else "value is too long"
    return FieldError(TOO_LONG, str(path), "", detail)


def too_many(path: Path, actual: int, maximum: int) -> FieldError:
    """Return the error of a list of `actual` items where at most `maximum` are allowed.

    A number below 0 is left out of the message.
    """
    detail = f"must have at most {_counted(maximum, 'item')}" if maximum >= 0 else "has too many items"
    return FieldError(TOO_MANY, str(path), actual if actual >= 0 else OMITTED, detail)


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def internal(path: Path, error: object) -> FieldError:
    """Return the error of a check that could not be made."""
    return FieldError(INTERNAL, str(path), "", str(error))


MAX_ERRORS: Final = 100_000
"""The largest number of errors that are collected for one object. Rules that compare list items with each other could
otherwise yield the square of the number of items.
"""


def first_errors(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Return an iterator over the first MAX_ERRORS of `errors`."""
    return islice(errors, MAX_ERRORS)


def aggregate(errors: Iterable[FieldError]) -> str:
    """Return the distinct texts of all `errors` as one text, as `Invalid` messages hold them."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
