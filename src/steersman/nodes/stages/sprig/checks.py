"""Functions for defaults, types, encodings, sums, regular expressions (sprig `defaults.go`, `reflect.go`,
`crypto.go`...).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import msgspec

from steersman.net.ascii import is_digits
from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.values import TemplateError, Value, plain, truth, type_name
from steersman.nodes.stages.sprig.collections import kind_name, same

_MOST_RANDOM: Final = 10_000
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS: Final = "0123456789"
_BASE64: Final = frozenset(f"{_LETTERS}{_DIGITS}+/=")
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_EXPANDED: Final = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})", re.ASCII)


def _default(instead: Value, *given: Value) -> Value:
    return given[0] if given and truth(given[0]) else instead


def _ternary(yes: Value, no: Value, which: Value) -> Value:
    if not isinstance(which, bool):
        raise TemplateError(f"ternary: wrong type for value; expected bool; got {type_name(which)}")
    return yes if which else no


def _fail(message: Value) -> Value:
    raise TemplateError(text(message, "fail"))


def _raw_json(value: Value) -> str:
    return msgspec.json.encode(_sorted(plain(value))).decode()


def _sorted(value: Any) -> Any:
    """Return plain data with sorted maps; msgspec's own sorting takes quadratic time."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _json(value: Value) -> str:
    return re.sub("[<>&]", lambda found: _HTML[found[0]], _raw_json(value))


def _pretty_json(value: Value) -> str:
    return msgspec.json.format(_json(value), indent=2)


def _from_json(value: Value) -> Value:
    """Return the value of a JSON text, with floats for numbers; nil for invalid text."""
    try:
        return json.loads(text(value, "fromJson"), parse_int=float)
    except (ValueError, RecursionError):
        return None


def _base64_decoded(value: Value) -> str:
    given = text(value, "b64dec")
    try:
        return base64.b64decode(given, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        place = next((at for at, char in enumerate(given) if char not in _BASE64), len(given) // 4 * 4)
        return f"illegal base64 data at input byte {place}"


def _sum(name: str) -> Function:
    def digest(value: Value) -> str:
        return hashlib.new(name, text(value, f"{name}sum").encode(), usedforsecurity=False).hexdigest()

    return digest


def _compiled(pattern: Value) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text(pattern, "regex"), options)
    except re2.error:
        raise TemplateError(f"error parsing regexp: {pattern}") from None


def _regex_match(pattern: Value, value: Value) -> bool:
    try:
        return _compiled(pattern).search(text(value, "regexMatch")) is not None
    except TemplateError:
        return False


def _regex_find(pattern: Value, value: Value) -> str:
    found = _compiled(pattern).search(text(value, "regexFind"))
    return "" if found is None else str(found.group(0))


def _regex_find_all(pattern: Value, value: Value, most: Value) -> list[Value]:
    found = [each.group(0) for each in _compiled(pattern).finditer(text(value, "regexFindAll"))]
    count = integer(most, "regexFindAll")
    return found if count < 0 else found[:count]


def _regex_replace_all(pattern: Value, value: Value, replacement: Value) -> str:
    compiled, layout = _compiled(pattern), text(replacement, "regexReplaceAll")

    def expanded(found: Any) -> str:
        def group(name: re.Match[str]) -> str:
            if name[0] == "$$":
                return "$"
            key = name[1] or name[2]
            known = int(key) <= compiled.groups if is_digits(key) else key in compiled.groupindex
            return (found.group(int(key) if is_digits(key) else key) or "") if known else ""

        return _EXPANDED.sub(group, layout)

    return str(compiled.sub(expanded, text(value, "regexReplaceAll")))


def _regex_replace_literal(pattern: Value, value: Value, replacement: Value) -> str:
    literal = text(replacement, "regexReplaceAllLiteral")
    return str(_compiled(pattern).sub(lambda _: literal, text(value, "regexReplaceAllLiteral")))


def _regex_split(pattern: Value, value: Value, most: Value) -> list[Value]:
    count, given = integer(most, "regexSplit"), text(value, "regexSplit")
    if count == 0:
        return []
    parts: list[Value] = []
    at = 0
    for found in _compiled(pattern).finditer(given):
        if 0 < count <= len(parts) + 1:
            break
        if found.end() == found.start() == 0 or found.start() == len(given) == found.end():
            continue
        parts.append(given[at : found.start()])
        at = found.end()
    return [*parts, given[at:]]


CHECKS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "all": lambda *values: all(map(truth, values)),
        "any": lambda *values: any(map(truth, values)),
        "b64dec": _base64_decoded,
        "b64enc": lambda value: base64.b64encode(text(value, "b64enc").encode()).decode(),
        "coalesce": lambda *values: next((each for each in values if truth(each)), None),
        "deepEqual": same,
        "default": _default,
        "empty": lambda value: not truth(value),
        "fail": _fail,
        "fromJson": _from_json,
        "kindIs": lambda wanted, value: text(wanted, "kindIs") == kind_name(value),
        "kindOf": kind_name,
        "regexFind": _regex_find,
        "regexFindAll": _regex_find_all,
        "regexMatch": _regex_match,
        "regexQuoteMeta": lambda value: re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text(value, "regexQuoteMeta")),
        "regexReplaceAll": _regex_replace_all,
        "regexReplaceAllLiteral": _regex_replace_literal,
        "regexSplit": _regex_split,
        "sha1sum": _sum("sha1"),
        "sha256sum": _sum("sha256"),
        "sha512sum": _sum("sha512"),
        "ternary": _ternary,
        "toJson": _json,
        "toPrettyJson": _pretty_json,
        "toRawJson": _raw_json,
        "typeIs": lambda wanted, value: text(wanted, "typeIs") == type_name(value),
        "typeOf": type_name,
    }
)


def by_chance(random: Random) -> Mapping[str, Function]:
    """Return the functions with random results."""

    def some(letters: str) -> Function:
        def made(count: Value) -> str:
            size = integer(count, "a text by chance")
            if not 0 <= size <= _MOST_RANDOM:
                raise TemplateError(f"a text by chance has from 0 to {_MOST_RANDOM} characters")
            return "".join(random.choices(letters, k=size))

        return made

    def number(least: Value, most: Value) -> int:
        first, behind = integer(least, "randInt"), integer(most, "randInt")
        if behind <= first:
            raise TemplateError("invalid argument to Intn")
        return random.randrange(first, behind)

    return {
        "randAlpha": some(_LETTERS),
        "randAlphaNum": some(_LETTERS + _DIGITS),
        "randInt": number,
        "randNumeric": some(_DIGITS),
        "uuidv4": lambda: str(UUID(int=random.getrandbits(128), version=4)),
    }
