"""Formats of text and numbers: each `is_*` function returns error messages, none for a valid value.

Follows k8s.io/apimachinery `util/validation` and `api/validate/content`. Lengths are in bytes of UTF-8, whatever unit a
message names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from steersman.machinery.go.strings import to_lower
from steersman.work.bounded_cache import BoundedSet
from steersman.work.threads import paced

DNS1123_LABEL_MAX_LENGTH: Final = 63
DNS1123_SUBDOMAIN_MAX_LENGTH: Final = 253
DNS1035_LABEL_MAX_LENGTH: Final = 63
LABEL_VALUE_MAX_LENGTH: Final = 63
PORT_NAME_MAX_LENGTH: Final = 15
LARGEST_ID: Final = (1 << 31) - 1

LABEL_PATTERN: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN_PATTERN: Final = rf"{LABEL_PATTERN}(\.{LABEL_PATTERN})*"
_LABEL_UNDERSCORE: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE: Final = rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*"
_WILDCARD_SUBDOMAIN: Final = rf"\*\.{SUBDOMAIN_PATTERN}"
DNS1035_LABEL_PATTERN: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
QUALIFIED_NAME_PATTERN: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE_PATTERN: Final = f"({QUALIFIED_NAME_PATTERN})?"
C_IDENTIFIER_PATTERN: Final = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT: Final = "[0-9]+%"
HTTP_HEADER_NAME_PATTERN: Final = "[-A-Za-z0-9]+"
CONFIG_MAP_KEY_PATTERN: Final = "[-._a-zA-Z0-9]+"

_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def max_length_error(length: int) -> str:
    """Return the message for text that is too long."""
    return f"must be no more than {length} characters"


def max_bytes_error(length: int) -> str:
    """Return the message for text that is too long, in the words of newer validators."""
    return f"must be no more than {length} bytes"


def inclusive_range_error(low: int, high: int) -> str:
    """Return the message for a number outside a range."""
    return f"must be between {low} and {high}, inclusive"


def regex_error(message: str, pattern: str, *examples: str) -> str:
    """Return the message for text that does not match `pattern`; the comma after each example is upstream's."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} ({f'e.g. {shown}' if shown else ''}regex used for validation is '{pattern}')"


EMPTY_ERROR: Final = "must be non-empty"


def byte_length(value: str) -> int:
    """Return the length of `value` in UTF-8."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def total_length(*texts: Collection[str], most: int) -> int:
    """Return the length of all texts in UTF-8; it may be in characters if even the bytes cannot exceed `most`."""
    length = 0
    for each in texts:
        length += sum(map(len, each))
    if length * _LONGEST_CHARACTER <= most:
        return length
    return sum(byte_length(text) for each in texts for text in paced(each))


_LONGEST_CHARACTER: Final = 4


Match = Callable[[str], object]


_LONG: Final = 4096


def characters(pattern: str) -> Match:
    """Return a matcher for a pattern of the form: set of first characters, set of middle ones, set of last ones.

    Each set must contain `a`. Long text is matched in pieces, so that no match holds the interpreter for long.
    """
    short = _whole(pattern)

    def matches(text: str) -> object:
        if len(text) <= _LONG:
            return short(text)
        pieces = (text[at : at + _LONG] for at in range(0, len(text), _LONG))
        return short(f"{text[0]}a") and short(f"a{text[-1]}") and all(short(f"a{piece}a") for piece in pieces)

    return matches


def _whole(pattern: str) -> Match:
    """Return a matcher of whole texts, including final newlines; upstream's patterns are ASCII only."""
    return re.compile(pattern, re.ASCII).fullmatch


def _dotted(label: str) -> Match:
    """Return a matcher for labels with dots between them.

    Labels of long text are matched one by one, so that no match holds the interpreter for long.
    """
    short, part = _whole(rf"{label}(\.{label})*"), _whole(label)

    def matches(text: str) -> object:
        return short(text) if len(text) <= _LONG else all(part(each) for each in text.split("."))

    return matches


_is_label: Final = characters(LABEL_PATTERN)
_is_subdomain: Final = _dotted(LABEL_PATTERN)
_is_subdomain_underscore: Final = _dotted(_LABEL_UNDERSCORE)
_is_wildcard_subdomain: Final = _whole(_WILDCARD_SUBDOMAIN)
_is_1035_label: Final = characters(DNS1035_LABEL_PATTERN)
_is_name_part: Final = characters(QUALIFIED_NAME_PATTERN)
_is_label_value: Final = characters(LABEL_VALUE_PATTERN)
_is_c_identifier: Final = characters(C_IDENTIFIER_PATTERN)
is_usual_label: Final = _whole("[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
is_usual_subdomain: Final = _whole(r"(?!.{254})[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
is_usual_name: Final = _whole("[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
is_usual_port_name: Final = _whole("(?!.{16})(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*")
"""Fast patterns: these four match nearly all valid texts, including the check of their length."""
_is_percent: Final = _whole(_PERCENT)
_is_http_header_name: Final = characters(HTTP_HEADER_NAME_PATTERN)
_is_config_map_key: Final = characters(CONFIG_MAP_KEY_PATTERN)
is_usual_config_map_key: Final = _whole("[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}")
"""A matcher of most valid keys."""
_is_port_name_charset: Final = characters("[-a-z0-9]+")
_is_relaxed_env_var_name: Final = characters("[ -<>-~]*")
is_usual_env_var_name: Final = _whole("[_a-zA-Z][_a-zA-Z0-9]{0,252}")
"""A matcher of most valid names of variables; `is_relaxed_env_var_name` judges the others."""

_LABEL_ERROR: Final = regex_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    LABEL_PATTERN,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_ERROR: Final = regex_error(_SUBDOMAIN_TEXT, SUBDOMAIN_PATTERN, "example.com")
_CASELESS_SUBDOMAIN_ERROR: Final = regex_error(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    SUBDOMAIN_PATTERN,
    "Example.com",
)
_SUBDOMAIN_UNDERSCORE_ERROR: Final = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN_UNDERSCORE,
    "example.com",
)
_WILDCARD_ERROR: Final = regex_error(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
    "which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD_SUBDOMAIN,
    "*.example.com",
)
_1035_LABEL_ERROR: Final = regex_error(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    DNS1035_LABEL_PATTERN,
    "my-name",
    "abc-123",
)
_QUALIFIED_ERROR: Final = regex_error(_QUALIFIED_TEXT, QUALIFIED_NAME_PATTERN, "MyName", "my.name", "123-abc")
_LABEL_VALUE_ERROR: Final = regex_error(
    f"a valid label must be an empty string or {_QUALIFIED_TEXT.removeprefix('must ')}",
    LABEL_VALUE_PATTERN,
    "MyValue",
    "my_value",
    "12345",
)
_C_IDENTIFIER_ERROR: Final = regex_error(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    C_IDENTIFIER_PATTERN,
    "my_name",
    "MY_NAME",
    "MyName",
)
_PERCENT_ERROR: Final = regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_HTTP_HEADER_NAME_ERROR: Final = regex_error(
    "a valid HTTP header must consist of alphanumeric characters or '-'", HTTP_HEADER_NAME_PATTERN, "X-Header-Name"
)
_RELAXED_ENV_VAR_NAME_ERROR: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_CONFIG_MAP_KEY_ERROR: Final = regex_error(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    CONFIG_MAP_KEY_PATTERN,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def _checked(value: str, maximum: int, matches: Match, error: str) -> list[str]:
    """Return messages about the length (in "characters") and the pattern of `value`."""
    errors = [max_length_error(maximum)] if byte_length(value) > maximum else []
    if not matches(value):
        errors.append(error)
    return errors


def is_dns1123_label(value: str) -> list[str]:
    """Return the errors of a label of a DNS name (RFC 1123), in lower case; none if valid."""
    if is_usual_label(value):
        return []
    errors = [max_length_error(DNS1123_LABEL_MAX_LENGTH)] if byte_length(value) > DNS1123_LABEL_MAX_LENGTH else []
    if not _is_label(value):
        errors.append("must not contain dots" if _is_subdomain(value) else _LABEL_ERROR)
    return errors


def is_dns1123_subdomain(value: str) -> list[str]:
    """Return the errors of a DNS name (RFC 1123), in lower case; none if valid."""
    if is_usual_subdomain(value):
        return []
    return _checked(value, DNS1123_SUBDOMAIN_MAX_LENGTH, _is_subdomain, _SUBDOMAIN_ERROR)


def is_long_name(value: str) -> list[str]:
    """Return the errors of a DNS name, with the messages of declarative validation (`k8s-long-name`); none if valid."""
    return _long_name(value, _SUBDOMAIN_ERROR)


def is_long_name_caseless(value: str) -> list[str]:
    """Return the errors of a DNS name in letters of any case (`k8s-long-name-caseless`); none if valid."""
    return _long_name(to_lower(value), _CASELESS_SUBDOMAIN_ERROR)


def _long_name(value: str, error: str) -> list[str]:
    too_long = byte_length(value) > DNS1123_SUBDOMAIN_MAX_LENGTH
    errors = [max_bytes_error(DNS1123_SUBDOMAIN_MAX_LENGTH)] if too_long else []
    return errors if _is_subdomain(value) else [*errors, error]


def is_dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """Return the errors of a DNS name whose labels may have underscores, as those of SRV records; none if valid."""
    return _checked(value, DNS1123_SUBDOMAIN_MAX_LENGTH, _is_subdomain_underscore, _SUBDOMAIN_UNDERSCORE_ERROR)


def is_wildcard_dns1123_subdomain(value: str) -> list[str]:
    """Return the errors of a DNS name that starts with `*.` (RFC 1034 section 4.3.3); none if valid."""
    return _checked(value, DNS1123_SUBDOMAIN_MAX_LENGTH, _is_wildcard_subdomain, _WILDCARD_ERROR)


def is_dns1035_label(value: str) -> list[str]:
    """Return the errors of a label of a DNS name (RFC 1035), which starts with a letter; none if valid."""
    return _checked(value, DNS1035_LABEL_MAX_LENGTH, _is_1035_label, _1035_LABEL_ERROR)


# Every write checks the keys of all labels and annotations, nearly all of which were checked before. The set is bounded
# in number, and in length by the rules themselves.
MOST_KNOWN: Final = 4096
known_keys: Final[BoundedSet[str]] = BoundedSet(MOST_KNOWN)


def is_qualified_name(value: str) -> list[str]:
    """Return the errors of a label or annotation key: a name, optionally after a DNS subdomain and a slash."""
    if value in known_keys or known_keys.has(value):
        return []
    errors = [] if is_usual_name(value) else _qualified_name_errors(value)
    if not errors:
        known_keys.keep(value)
    return errors


def are_known_qualified_names(values: Iterable[str]) -> bool:
    """Return True if all values were found valid before. False says nothing: `is_qualified_name` judges then."""
    return known_keys.issuperset(values)


def are_usual_labels(labels: Mapping[str, str]) -> bool:
    """Return True if all keys were found valid before, and all values match a fast pattern.

    False has no meaning: the rules for each key and value decide then.
    """
    return known_keys.issuperset(labels) and all(map(is_usual_name, filter(None, labels.values())))


def _qualified_name_errors(value: str) -> list[str]:
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_ERROR} {example}"]
    errors = []
    if slash:
        errors = [f"prefix part {message}" for message in _prefix_errors(prefix)]
    if not name:
        errors.append(f"name part {EMPTY_ERROR}")
    elif byte_length(name) > LABEL_VALUE_MAX_LENGTH:
        errors.append(f"name part {max_bytes_error(LABEL_VALUE_MAX_LENGTH)}")
    if not _is_name_part(name):
        errors.append(f"name part {_QUALIFIED_ERROR}")
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return [EMPTY_ERROR]
    too_long = byte_length(prefix) > DNS1123_SUBDOMAIN_MAX_LENGTH
    errors = [max_bytes_error(DNS1123_SUBDOMAIN_MAX_LENGTH)] if too_long else []
    if not _is_subdomain(prefix):
        errors.append(_SUBDOMAIN_ERROR)
    return errors


def is_valid_label_value(value: str) -> list[str]:
    """Return the errors of the value of a label; none if valid."""
    if not value or is_usual_name(value):
        return []
    too_long = byte_length(value) > LABEL_VALUE_MAX_LENGTH
    errors = [max_bytes_error(LABEL_VALUE_MAX_LENGTH)] if too_long else []
    if not _is_label_value(value):
        errors.append(_LABEL_VALUE_ERROR)
    return errors


def is_c_identifier(value: str) -> list[str]:
    """Return the errors of a C identifier; none if valid."""
    return [] if _is_c_identifier(value) else [_C_IDENTIFIER_ERROR]


def is_in_range(value: int, low: int, high: int) -> list[str]:
    """Return the errors of a number from `low` to `high`, both included; none if valid."""
    return [] if low <= value <= high else [inclusive_range_error(low, high)]


def is_valid_port_num(port: int) -> list[str]:
    """Return the errors of a port number, from 1 on; none if valid."""
    return [] if 1 <= port <= 65535 else is_in_range(port, 1, 65535)


def is_valid_user_id(uid: int) -> list[str]:
    """Return the errors of a Unix user id; none if valid."""
    return is_in_range(uid, 0, LARGEST_ID)


def is_valid_group_id(gid: int) -> list[str]:
    """Return the errors of a Unix group id; none if valid."""
    return is_in_range(gid, 0, LARGEST_ID)


def is_valid_port_name(value: str) -> list[str]:
    """Return the errors of a service name (RFC 6335), in lower case; none if valid."""
    if is_usual_port_name(value):
        return []
    errors = [max_length_error(PORT_NAME_MAX_LENGTH)] if byte_length(value) > PORT_NAME_MAX_LENGTH else []
    if not _is_port_name_charset(value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def is_valid_port_number_or_name(port: int | str) -> list[str]:
    """Return the errors of a port given as a number or as a name; none if valid."""
    return is_valid_port_num(port) if isinstance(port, int) else is_valid_port_name(port)


def is_valid_percent(value: str) -> list[str]:
    """Return the errors of a percentage such as `25%`; none if valid."""
    return [] if _is_percent(value) else [_PERCENT_ERROR]


def is_http_header_name(value: str) -> list[str]:
    """Return the errors of the name of an HTTP header, by stricter rules than RFC 7230; none if valid."""
    return [] if _is_http_header_name(value) else [_HTTP_HEADER_NAME_ERROR]


def is_relaxed_env_var_name(value: str) -> list[str]:
    """Return the errors of the name of an environment variable in `env`, which is printable ASCII without `=`."""
    if is_usual_env_var_name(value):
        return []
    errors = [] if value else [f"environment variable name {EMPTY_ERROR}"]
    if not _is_relaxed_env_var_name(value):
        errors.append(_RELAXED_ENV_VAR_NAME_ERROR)
    return errors


_known_data_keys: Final[BoundedSet[str]] = BoundedSet(MOST_KNOWN)
_FEW: Final = 64
"""Keys of one object that are remembered."""


def are_usual_config_map_keys(keys: Collection[str]) -> bool:
    """Return True if a fast check finds all of them valid; otherwise `is_config_map_key` must decide."""
    if _known_data_keys.issuperset(keys):
        return True
    if not all(map(is_usual_config_map_key, keys)):
        return False
    if len(keys) <= _FEW:
        for key in keys:
            _known_data_keys.keep(key)
    return True


def is_config_map_key(value: str) -> list[str]:
    """Return the errors of a key in the data of a ConfigMap or Secret, which may become a file's name; none if valid."""
    if is_usual_config_map_key(value):
        return []
    errors = _checked(value, DNS1123_SUBDOMAIN_MAX_LENGTH, _is_config_map_key, _CONFIG_MAP_KEY_ERROR)
    return errors + _parent_directory_errors(value)


def _parent_directory_errors(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def is_path_segment_name(value: str) -> list[str]:
    """Return the errors of a name that can be one segment of a URL's path; none if valid."""
    return [f"may not be '{value}'"] if value in (".", "..") else is_path_segment_prefix(value)


def is_path_segment_prefix(value: str) -> list[str]:
    """Return the errors of the beginning of a path segment name; none if valid."""
    if "/" not in value and "%" not in value:
        return []
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in value]
