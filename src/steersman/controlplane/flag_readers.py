"""Parsers of flag values: each takes a text and raises ValueError with an explanation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from steersman.authorization.steps import MODES
from steersman.controlplane.controllers import check_controllers
from steersman.controlplane.feature_gates import feature_gates
from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import url_error
from steersman.machinery.suggestions import known_names_hint, not_allowed_message
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import is_digits, lower

_LONGEST_INTEGER: Final = 100
"""Limit of characters in an integer."""
_DIGITS: Final = "0123456789abcdef"


def boolean(text: str) -> bool:
    """Parse a boolean as Go's flags do: 1, t, true, 0, f, false, and in capitals."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def seconds(text: str) -> float:
    """Parse a duration in Go's syntax, such as `1m30s`, which must not be negative; return seconds."""
    try:
        nanoseconds = parse_duration(text)
    except DurationError as error:
        raise ValueError(str(error)) from None
    if nanoseconds < 0:
        raise ValueError(f"{text} is negative")
    return nanoseconds / 1e9


def whole_seconds(text: str) -> int:
    """Parse a duration like `seconds`; return whole seconds, rounded down."""
    return int(seconds(text))


def token_expiration(text: str) -> int:
    """Parse the longest lifetime of tokens, 0 or from one hour to 2^32 seconds; return whole seconds."""
    lasting = seconds(text)
    if lasting and not 3600 <= lasting <= 1 << 32:
        raise ValueError("must be between 1 hour and 2^32 seconds")
    return int(lasting)


def number(text: str) -> int:
    """Parse an integer that is not negative."""
    value = integer(text)
    if value < 0:
        raise ValueError(f"{value} is negative")
    return value


def positive(text: str) -> int:
    """Parse an integer above 0."""
    value = integer(text)
    if value <= 0:
        raise ValueError(f"should be a positive number, but value '{value}' provided")
    return value


def integer(text: str) -> int:
    """Parse an int64 as Go's flags do, with optional base prefixes and underscores: `0x10`, `0o7` or `07`, `0b1`,
    `1_000`.
    """
    sign = text[:1] if text[:1] in ("+", "-") else ""
    digits = text[len(sign) :]
    if digits[:1] == "0" and digits[1:2] and digits[1] in "_01234567":
        digits = f"0o{digits[1:]}"
    if len(digits) > _LONGEST_INTEGER or not (
        digits.isascii() and is_digits(digits[:1]) and lower(digits[-1:]) in _DIGITS
    ):
        raise ValueError(f"{text[:_LONGEST_INTEGER]!r} is not a whole number")
    try:
        value = int(sign + digits, 0)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{text} is out of range")
    return value


def integers(text: str) -> tuple[int, ...]:
    """Parse integers separated by commas."""
    return tuple(integer(trim_space(each)) for each in text.split(","))


def decimal(text: str) -> float:
    """Parse a floating-point number."""
    return float(text)


def chance(text: str) -> float:
    """Parse a probability from 0 to 0.02, the bound of upstream's `--goaway-chance`."""
    value = float(text)
    if not 0 <= value <= 0.02:
        raise ValueError("must be between 0 and 0.02")
    return value


def port(text: str) -> int:
    """Parse a port, from 0 to 65535."""
    value = number(text)
    if value > 65535:
        raise ValueError(f"{value} is not a port")
    return value


def names(text: str) -> tuple[str, ...]:
    """Split a text at commas, without surrounding spaces and empty entries."""
    return tuple(trim_space(each) for each in text.split(",") if trim_space(each))


def plugins(text: str) -> tuple[str, ...]:
    """Parse the names of admission plugins like `names`; a function of its own so that help and completion know the
    type.
    """
    return names(text)


def cipher_suites(text: str) -> tuple[str, ...]:
    """Parse the names of cipher suites like `names`; a function of its own so that help and completion know the type."""
    return names(text)


def one(text: str) -> tuple[str, ...]:
    """Return the text as the only entry of a tuple, for a flag that may be repeated."""
    return (text,)


def address(text: str) -> str:
    """Parse an IP address without a zone; return its canonical text."""
    if "%" in text:  # Go's flags accept no zones
        raise ValueError(f"{text!r} does not appear to be an IPv4 or IPv6 address")
    return str(ip_address(text))


def bind_address(text: str) -> str:
    """Parse an IP address to listen on; an empty text means 0.0.0.0."""
    return address(text) if trim_space(text) else "0.0.0.0"


def file(text: str) -> str:
    """Return the path of a readable file."""
    try:
        with open(text, "rb"):
            return text
    except OSError as error:
        raise ValueError(f"{text}: {error.strerror}") from None


def folder(text: str) -> Path:
    """Return the absolute path of a folder, which may be missing. An empty text would mean the current directory."""
    if not text:
        raise ValueError("the name of a folder is needed")
    return Path(os.path.abspath(text))


def one_file(text: str) -> tuple[str, ...]:
    """Return the path of a readable file as the only entry of a tuple, for a flag that may be repeated."""
    return (file(text),)


def patterns(text: str) -> tuple[str, ...]:
    """Return the regular expressions of origins (RE2).

    Each must pin the start or end of the host, as upstream demands: `//example.com` admits example.com.evil.org.
    """
    from steersman.cel.regular import PatternError, compiled_at_once

    expressions = tuple(text.split(",")) if text else ()
    for pattern in expressions:
        if not pattern:
            raise ValueError("an expression is empty")
        try:
            compiled_at_once(pattern)
        except PatternError as error:
            raise ValueError(f"invalid regular expression: {error}") from None
        if not any(each in pattern for each in _BEGINNINGS) or not any(each in pattern for each in _ENDS):
            raise ValueError(
                "invalid regular expression: regular expression does not pin to start/end of host in the origin header"
            )
    return expressions


_BEGINNINGS: Final = ("^", "//")
_ENDS: Final = ("$", ":")


def issuer(text: str) -> tuple[str, ...]:
    """Return an issuer of tokens as the only entry of a tuple. It must be a URL if it has a colon, and not empty."""
    if not text:
        raise ValueError("should not be an empty string")
    error = url_error(text) if ":" in text else None
    if error is not None:
        raise ValueError(f"{text!r} contained a ':' but was not a valid URL: {error}")
    return (text,)


def parse_override(text: str) -> tuple[str, str, tuple[str, ...]]:
    """Return (group, resource, URLs) of an entry of `--etcd-servers-overrides`. Raises ValueError."""
    resource, _, servers = text.partition("#")
    group, _, plural = resource.partition("/")
    urls = tuple(servers.split(";"))
    if text.count("#") != 1 or resource.count("/") != 1 or not all(urls):
        raise ValueError(
            "invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated"
        )
    return group, plural, urls


def overrides(text: str) -> tuple[str, ...]:
    """Split `--etcd-servers-overrides` into its entries, each of which `parse_override` must accept."""
    parts = names(text)
    for each in parts:
        parse_override(each)
    return parts


def backend(text: str) -> str:
    """Return the name of a storage backend, which must be empty or `etcd3`."""
    if text not in ("", "etcd3"):
        raise ValueError("invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'")
    return text


def initialization(text: str) -> float:
    """Parse a duration like `seconds`, with upstream's text for a negative one."""
    if text.startswith("-"):
        raise ValueError("can not be negative value")
    return seconds(text)


def unsupported_format(text: str, formats: Iterable[str]) -> str:
    """Return upstream's text for an unknown log format."""
    return f"format: Invalid value: {quote(text)}: Unsupported log format{known_names_hint(text, formats)}"


def modes(text: str) -> tuple[str, ...]:
    """Parse the authorization modes, at least one, in their order."""
    mode_names = names(text)
    for mode in mode_names:
        if mode not in MODES:
            raise ValueError(f"unknown mode {mode!r}{known_names_hint(mode, MODES)}")
    if not mode_names:
        raise ValueError("modes must be given, each once")
    return mode_names


def review_version(text: str) -> str:
    """Return the version of SubjectAccessReviews, v1 or v1beta1."""
    if text not in ("v1", "v1beta1"):
        raise ValueError(
            f'unsupported webhook authorizer version {quote(text)}, supported versions are "v1", "v1beta1"'
        )
    return text


class OneOf:
    """Parser of a text that is one of `values`, or empty for the default if `may_be_empty`."""

    def __init__(
        self,
        *values: str,
        may_be_empty: bool = False,
        told: Callable[[str, Iterable[str]], str] = not_allowed_message,
    ) -> None:
        self.values = values
        self.may_be_empty = may_be_empty
        self._told = told

    def __call__(self, text: str) -> str:
        if text not in self.values and (text or not self.may_be_empty):
            raise ValueError(self._told(text, self.values))
        return text


class Only:
    """Parser of a boolean of which only one value is supported."""

    def __init__(self, value: bool) -> None:
        self._value = value

    def __call__(self, text: str) -> bool:
        if boolean(text) is not self._value:
            raise ValueError(f"not supported yet: {text}")
        return self._value


def header_names(text: str) -> tuple[str, ...]:
    """Split header names, or other texts, at commas; no entry may be blank."""
    headers = tuple(text.split(",")) if text else ()
    if not all(map(trim_space, headers)):
        raise ValueError("empty value")
    return headers


def controllers(text: str) -> tuple[str, ...]:
    """Parse names of controllers, also `*` and `-NAME`, which must all be known."""
    controller_names = names(text)
    check_controllers(controller_names)
    return controller_names


def claim(text: str) -> dict[str, str]:
    """Parse one claim as `NAME=VALUE`; return a dict of value by name."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"malformed pair, expect string=string: {text}")
    return {trim_space(name): trim_space(value)}


def pairs(text: str) -> dict[str, str]:
    """Parse `KEY=VALUE,...`; return a dict of values by key. A key without "=" has the value ""."""
    values = {}
    for each in text.split(","):
        key, _, value = each.partition("=")
        if each:
            values[trim_space(key)] = trim_space(value)
    return values


DURATIONS: Final = (initialization, seconds, token_expiration, whole_seconds)
"""Parsers that return durations in seconds."""
SHOWN: Final[dict[Callable[[str], Any], str]] = {
    address: "ip",
    bind_address: "ip",
    chance: "float",
    cipher_suites: "strings",
    claim: "CLAIM=VALUE",
    controllers: "strings",
    decimal: "float",
    feature_gates: "KEY=VALUE,...",
    file: "file",
    folder: "folder",
    header_names: "strings",
    initialization: "duration",
    integer: "int",
    integers: "ints",
    issuer: "strings",
    modes: "strings",
    names: "strings",
    number: "int",
    one: "string",
    one_file: "file",
    overrides: "strings",
    pairs: "KEY=VALUE,...",
    patterns: "strings",
    plugins: "strings",
    port: "int",
    positive: "int",
    seconds: "duration",
    token_expiration: "duration",
    whole_seconds: "duration",
}
"""Placeholders of values in help, by parser; the default is "string". Booleans have no placeholder."""
