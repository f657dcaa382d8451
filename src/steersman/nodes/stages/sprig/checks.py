"""Functions for defaults, types, encodings, sums, regular expressions (sprig `defaults.go`, `reflect.go`,
`crypto.go`...).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import msgspec

from steersman.net.ascii import is_digits
from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.values import TemplateError, Value, check_size, plain, truth, type_name
from steersman.nodes.stages.sprig.collections import kind_name, same
from steersman.work.patterns import late_pattern

_BLOCK: Final = 16
"""Bytes of a block of AES."""
_MOST_RANDOM: Final = 10_000
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS: Final = "0123456789"
_BASE64: Final = frozenset(f"{_LETTERS}{_DIGITS}+/=")
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_EXPANDED: Final = late_pattern(r"\$(?:\$|(\w+)|\{(\w+)\})", re.ASCII)


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


def _base32_decoded(value: Value) -> str:
    given = text(value, "b32dec")
    try:
        return base64.b32decode(given).decode(errors="replace")
    except (binascii.Error, ValueError):
        return "illegal base32 data"


def _copied(value: Value) -> Value:
    """Return a copy of a value. Raises TemplateError if it is too large."""
    check_size(value)
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return {key: _copied(each) for key, each in value.items()} if isinstance(value, dict) else value


def _cipher(password: Value, vector: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = text(password, "AES").encode()[:32].ljust(32, b"\0")
    return Cipher(algorithms.AES(key), modes.CBC(vector))


def _encrypted(password: Value, value: Value) -> str:
    given = text(value, "encryptAES").encode()
    if not given:
        return ""
    vector, padding = os.urandom(_BLOCK), _BLOCK - len(given) % _BLOCK
    encryptor = _cipher(password, vector).encryptor()
    return base64.b64encode(vector + encryptor.update(given + bytes([padding]) * padding)).decode()


def _decrypted(password: Value, value: Value) -> str:
    try:
        data = base64.b64decode(text(value, "decryptAES"), validate=True)
    except (binascii.Error, ValueError):
        raise TemplateError("decryptAES: illegal base64 data") from None
    if not data:
        return ""
    if len(data) < 2 * _BLOCK or len(data) % _BLOCK:
        raise TemplateError("decryptAES: the text is not encrypted")
    found: bytes = _cipher(password, data[:_BLOCK]).decryptor().update(data[_BLOCK:])
    if not 0 < found[-1] <= len(found):
        raise TemplateError("decryptAES: the password is another one")
    return found[: -found[-1]].decode(errors="replace")


def _sum(name: str) -> Function:
    def digest(value: Value) -> str:
        return hashlib.new(name, text(value, f"{name}sum").encode(), usedforsecurity=False).hexdigest()

    return digest


def compiled(pattern: Value) -> Any:
    """Return a compiled pattern of RE2. Raises TemplateError."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text(pattern, "regex"), options)
    except re2.error:
        raise TemplateError(f"error parsing regexp: {pattern}") from None


def _regex_match(pattern: Value, value: Value) -> bool:
    try:
        return compiled(pattern).search(text(value, "regexMatch")) is not None
    except TemplateError:
        return False


def _regex_find(pattern: Value, value: Value) -> str:
    found = compiled(pattern).search(text(value, "regexFind"))
    return "" if found is None else str(found.group(0))


def _regex_find_all(pattern: Value, value: Value, most: Value) -> list[Value]:
    found = [each.group(0) for each in compiled(pattern).finditer(text(value, "regexFindAll"))]
    count = integer(most, "regexFindAll")
    return found if count < 0 else found[:count]


def _regex_replace_all(pattern: Value, value: Value, replacement: Value) -> str:
    found_by, layout = compiled(pattern), text(replacement, "regexReplaceAll")

    def expanded(found: Any) -> str:
        def group(name: re.Match[str]) -> str:
            if name[0] == "$$":
                return "$"
            key = name[1] or name[2]
            known = int(key) <= found_by.groups if is_digits(key) else key in found_by.groupindex
            return (found.group(int(key) if is_digits(key) else key) or "") if known else ""

        return _EXPANDED.sub(group, layout)

    return str(found_by.sub(expanded, text(value, "regexReplaceAll")))


def _regex_replace_literal(pattern: Value, value: Value, replacement: Value) -> str:
    literal = text(replacement, "regexReplaceAllLiteral")
    return str(compiled(pattern).sub(lambda _: literal, text(value, "regexReplaceAllLiteral")))


def _regex_split(pattern: Value, value: Value, most: Value) -> list[Value]:
    count, given = integer(most, "regexSplit"), text(value, "regexSplit")
    if count == 0:
        return []
    parts: list[Value] = []
    at = 0
    for found in compiled(pattern).finditer(given):
        if 0 < count <= len(parts) + 1:
            break
        if found.end() == found.start() == 0 or found.start() == len(given) == found.end():
            continue
        parts.append(given[at : found.start()])
        at = found.end()
    return [*parts, given[at:]]


CHECKS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "adler32sum": lambda value: str(zlib.adler32(text(value, "adler32sum").encode())),
        "all": lambda *values: all(map(truth, values)),
        "any": lambda *values: any(map(truth, values)),
        "b32dec": _base32_decoded,
        "b32enc": lambda value: base64.b32encode(text(value, "b32enc").encode()).decode(),
        "b64dec": _base64_decoded,
        "b64enc": lambda value: base64.b64encode(text(value, "b64enc").encode()).decode(),
        "coalesce": lambda *values: next((each for each in values if truth(each)), None),
        "decryptAES": _decrypted,
        "deepCopy": _copied,
        "deepEqual": same,
        "default": _default,
        "empty": lambda value: not truth(value),
        "encryptAES": _encrypted,
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
        "typeIsLike": lambda wanted, value: type_name(value) in (text(wanted, "typeIsLike"), f"*{wanted}"),
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

    def encoded(count: Value) -> str:
        size = integer(count, "randBytes")
        if not 0 <= size <= _MOST_RANDOM:
            raise TemplateError(f"randBytes: from 0 to {_MOST_RANDOM} bytes")
        return base64.b64encode(random.randbytes(size)).decode()

    def shuffled(value: Value) -> str:
        letters = list(text(value, "shuffle"))
        random.shuffle(letters)
        return "".join(letters)

    return {
        "randAlpha": some(_LETTERS),
        "randAlphaNum": some(_LETTERS + _DIGITS),
        "randInt": number,
        "randAscii": some("".join(map(chr, range(32, 127)))),
        "randBytes": encoded,
        "randNumeric": some(_DIGITS),
        "shuffle": shuffled,
        "uuidv4": lambda: str(UUID(int=random.getrandbits(128), version=4)),
    }
