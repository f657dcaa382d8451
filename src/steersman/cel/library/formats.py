"""Named formats, such as `format.dns1123Label().validate(text)` (apiserver `cel/library` format)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from typing import Final

from steersman.cel.environment import Library, Overload
from steersman.cel.types import STRING, list_of, object_type, optional_of
from steersman.cel.values import NONE, Extension, Optional
from steersman.machinery.go.urls import uri_error
from steersman.machinery.validation.formats import (
    is_dns1035_label,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_qualified_name,
    is_valid_label_value,
)
from steersman.machinery.values.times import TimeError
from steersman.machinery.values.times import parse as parse_time
from steersman.work.patterns import late_pattern

FORMAT: Final = object_type("kubernetes.NamedFormat")

_UUID: Final = late_pattern(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)


class Format(Extension):
    """A named format. `pattern_size` is the length of its regular expression for cost estimates."""

    __slots__ = ("name", "pattern_size", "validate")
    cel_type = FORMAT

    def __init__(self, name: str, pattern_size: int, validate: Callable[[str], list[str]]) -> None:
        self.name: Final = name
        self.pattern_size: Final = pattern_size
        self.validate: Final = validate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def _prefix(validate: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the validation of a prefix for generated names, which may end with a dash."""
    return lambda text: validate(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    wrong = uri_error(text)
    return [] if wrong is None else [wrong]


def _told(message: str, holds: Callable[[str], bool]) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [message]


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_datetime(text: str) -> bool:
    try:
        parse_time(text)
    except TimeError:
        return False
    return True


FORMATS_BY_NAME: Final = {
    "dns1123Label": Format("DNS1123Label", 30, is_dns1123_label),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, is_dns1123_subdomain),
    "dns1035Label": Format("DNS1035Label", 30, is_dns1035_label),
    "qualifiedName": Format("QualifiedName", 60, is_qualified_name),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _prefix(is_dns1123_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _prefix(is_dns1123_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _prefix(is_dns1035_label)),
    "labelValue": Format("LabelValue", 40, is_valid_label_value),
    "uri": Format("URI", 1103, _uri),
    "uuid": Format("uuid", 70, _told("does not match the UUID format", lambda text: _UUID.fullmatch(text) is not None)),
    "byte": Format("byte", 84, _told("invalid base64", _is_base64)),
    "date": Format("date", 71, _told("invalid date", _is_date)),
    "datetime": Format("datetime", 71, _told("invalid datetime", _is_datetime)),
}


def _validate(format: Format, text: str) -> Optional:
    wrong = format.validate(text)
    return Optional(wrong) if wrong else NONE


def _named(name: str) -> Optional:
    found = FORMATS_BY_NAME.get(name)
    return NONE if found is None else Optional(found)


def _constant(name: str, format: Format) -> tuple[Overload, ...]:
    return (Overload(f"format.{name}", (), FORMAT, lambda: format),)


FORMATS: Final = Library(
    functions={
        "validate": (
            Overload("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate, member=True),
        ),
        "format.named": (Overload("format-named", (STRING,), optional_of(FORMAT), _named),),
        **{f"format.{name}": _constant(name, format) for name, format in FORMATS_BY_NAME.items()},
    }
)
