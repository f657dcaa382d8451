"""YAML as sigs.k8s.io/yaml has it: read as YAML 1.1 the way go-yaml v2 does, written from JSON with sorted keys.

Timestamps stay text, yes and on are true, numbers starting with 0 are octal, aliases are followed within a bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, Final, cast

import msgspec
import yaml as pyyaml

from steersman.machinery.field import quote
from steersman.machinery.serializer import encode, whole_or_float

MAX_NODES_FROM_ALIASES: Final = 100_000
"""How many nodes following aliases may visit altogether; documents made to grow are refused here."""

_BASE_LOADER: Any = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_DUMPER: Any = getattr(pyyaml, "CSafeDumper", pyyaml.SafeDumper)

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INTEGERS = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+", re.ASCII), 16),
    (re.compile(r"[-+]?0[bB][01]+", re.ASCII), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+", re.ASCII), 8),
    (re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII), 10),
)
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_DAY = r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:[.,][0-9]+)?"
_TIME = re.compile(rf"{_DAY}(?:[Tt]{_CLOCK}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})| {_CLOCK})?", re.ASCII)
"""What go-yaml takes for a timestamp. It stays text, but is written with quotes."""
_DIGITS = re.compile(r"[0-9]{1,18}")
_DIGITS_BEFORE = re.compile(r"[0-9]+\Z")
_ANCHOR = re.compile(r"[&*]([0-9A-Za-z_-]+)")
_PREFIX = "tag:yaml.org,2002:"
_STR_TAG, _FLOAT_TAG, _MERGE_TAG = f"{_PREFIX}str", f"{_PREFIX}float", f"{_PREFIX}merge"
_RESOLVED = frozenset({"", _FLOAT_TAG, f"{_PREFIX}int", f"{_PREFIX}bool", f"{_PREFIX}null"})
"""Tags of scalars whose text decides what they are; no tag is what a plain scalar without one has."""


class _Loader(_BASE_LOADER):  # type: ignore[misc]
    """Parses and composes; leaves what plain scalars stand for to this module."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        """The tag of a node without one."""
        if kind is pyyaml.ScalarNode:
            return "" if implicit[0] else _STR_TAG
        return f"{_PREFIX}seq" if kind is pyyaml.SequenceNode else f"{_PREFIX}map"


class YAMLError(ValueError):
    """The text is not YAML that has a JSON form; the message is upstream's where go-yaml has one."""


def load(data: bytes) -> tuple[Any, str]:
    """The first document as JSON values, and go-yaml's message about keys given twice, empty if there are none.

    Raises YAMLError.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise YAMLError("yaml: invalid leading UTF-8 octet") from None
    loader = _Loader(text)
    try:
        if not loader.check_node():
            return None, ""
        node = loader.get_node()
    except pyyaml.reader.ReaderError:
        raise YAMLError("yaml: control characters are not allowed") from None
    except pyyaml.MarkedYAMLError as error:
        if error.problem == "found undefined alias" and error.problem_mark is not None:
            alias = _ANCHOR.match(text, error.problem_mark.index)
            raise YAMLError(f"yaml: unknown anchor '{alias.group(1) if alias else ''}' referenced") from None
        raise YAMLError(f"yaml: {_where(error)}{error.problem or 'unknown problem parsing YAML content'}") from None
    except RecursionError:
        raise YAMLError("yaml: exceeded max depth") from None
    finally:
        loader.dispose()
    reader = _Reader(text)
    try:
        value = reader.value(node)
    except RecursionError:
        raise YAMLError("yaml: exceeded max depth") from None
    duplicates = "yaml: unmarshal errors:\n" + "\n".join(f"  {text}" for text in reader.repeated)
    return value, duplicates if reader.repeated else ""


def _where(error: pyyaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    if mark is not None and mark.line:
        line = mark.line + (1 if isinstance(error, pyyaml.scanner.ScannerError) else 0)
        return f"line {line}: "
    if error.context_mark is not None and error.context_mark.line:
        return f"line {error.context_mark.line}: "
    return ""


class _Reader:
    """Turns nodes into JSON values."""

    def __init__(self, text: str) -> None:
        self.repeated: list[str] = []
        self._text = text
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._visits = 0

    def value(self, node: Any) -> Any:
        """The JSON value of a node. Raises YAMLError."""
        if isinstance(node, pyyaml.ScalarNode):
            return self._scalar(node)
        with self._visit(node):
            return self._sequence(node) if isinstance(node, pyyaml.SequenceNode) else self._mapping(node)

    @contextmanager
    def _visit(self, node: Any) -> Iterator[None]:
        """Around the reading of a list or map: none may contain itself, nor may aliases lead to too many."""
        identity = id(node)
        if identity in self._open:
            match = _ANCHOR.match(self._text, node.start_mark.index)
            raise YAMLError(f"yaml: anchor '{match.group(1) if match else ''}' value contains itself")
        self._visits += 1
        if self._visits - len(self._seen) > MAX_NODES_FROM_ALIASES:
            raise YAMLError("yaml: document contains excessive aliasing")
        self._seen.add(identity)
        self._open.add(identity)
        try:
            yield
        finally:
            self._open.discard(identity)

    def _sequence(self, node: pyyaml.SequenceNode) -> list[Any]:
        return [self.value(item) for item in node.value]

    def _mapping(self, node: pyyaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._fill(node, found, set())
        return found

    def _fill(self, node: pyyaml.MappingNode, found: dict[str, Any], seen: set[tuple[type, Any]]) -> None:
        """Puts the members of a node into `found`, later ones over earlier ones, merged ones in their place."""
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                self._merge(value_node, found, seen)
                continue
            key = self._key(key_node)
            value = self.value(value_node)
            if key is None:
                raise YAMLError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_shown(value)}")
            if (type(key), key) in seen:
                line = value_node.start_mark.line + 1
                self.repeated.append(f"line {line}: key {_shown(key)} already set in map")
            seen.add((type(key), key))
            found[_text_key(key)] = value

    def _merge(self, node: Any, found: dict[str, Any], seen: set[tuple[type, Any]]) -> None:
        for each in reversed(node.value) if isinstance(node, pyyaml.SequenceNode) else (node,):
            if not isinstance(each, pyyaml.MappingNode):
                raise YAMLError("yaml: map merge requires map or sequence of maps as the value")
            with self._visit(each):
                self._fill(each, found, seen)

    def _key(self, node: Any) -> Any:
        if not isinstance(node, pyyaml.ScalarNode):
            raise YAMLError("yaml: invalid map key")
        return self._scalar(node)

    def _scalar(self, node: pyyaml.ScalarNode) -> Any:
        text = cast("str", node.value)
        if node.tag not in _RESOLVED:
            return text
        value = resolve(text)
        return float(value) if node.tag == _FLOAT_TAG and type(value) is int else value


def _is_merge(node: Any) -> bool:
    return isinstance(node, pyyaml.ScalarNode) and node.value == "<<" and node.tag in ("", _MERGE_TAG)


def resolve(text: str) -> Any:
    """What a plain scalar stands for: a word, a number or its text."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == ".":
        return _float(text.replace("_", "")) if _FLOAT.fullmatch(text) else text
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    for pattern, base in _INTEGERS:
        if len(plain) < 80 and pattern.fullmatch(plain):
            value = int(plain.replace("o", "").replace("O", "") if base == 8 else plain, base)
            if -(2**63) <= value < 2**64:
                return value
    return _float(plain) if _FLOAT.fullmatch(plain) else text


def _float(text: str) -> Any:
    value = float(text)
    return text if value in (math.inf, -math.inf) else value


def _text_key(key: Any) -> str:
    """The JSON name a key becomes."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        if math.isnan(key):
            return ".nan"
        return f"{key:g}" if math.isfinite(key) else ".inf" if key > 0 else "-.inf"
    return str(key)


def _shown(value: Any) -> str:
    """A value as Go's %#v prints it."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "interface {}(nil)" if value is None else str(value)


def to_json(value: Any) -> bytes:
    """The JSON of a document read, keys sorted. Raises YAMLError for numbers JSON does not have."""
    return encode(_json_numbers(value))


def _json_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_numbers(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise YAMLError(f"json: unsupported value: {shown}")
        return whole_or_float(value)
    return value


def from_json(data: bytes) -> bytes:
    """YAML of a JSON document, keys in go-yaml's order. Raises msgspec.DecodeError."""
    events: list[Any] = [pyyaml.StreamStartEvent(), pyyaml.DocumentStartEvent(explicit=False)]
    _emit(msgspec.json.decode(data), events)
    events += (pyyaml.DocumentEndEvent(explicit=False), pyyaml.StreamEndEvent())
    text: str = pyyaml.emit(events, Dumper=_DUMPER, width=80, allow_unicode=True)
    return text.removesuffix("...\n").encode()


def _emit(value: Any, events: list[Any]) -> None:
    if isinstance(value, dict):
        events.append(pyyaml.MappingStartEvent(None, None, True, flow_style=False))
        for key in _ordered(value):
            events.append(_text(key))
            _emit(value[key], events)
        events.append(pyyaml.MappingEndEvent())
    elif isinstance(value, list):
        events.append(pyyaml.SequenceStartEvent(None, None, True, flow_style=False))
        for item in value:
            _emit(item, events)
        events.append(pyyaml.SequenceEndEvent())
    elif isinstance(value, str):
        events.append(_text(value))
    else:
        events.append(
            _scalar(_number(value) if isinstance(value, float) else msgspec.json.encode(value).decode(), None)
        )


def _scalar(text: str, style: str | None) -> Any:
    return pyyaml.ScalarEvent(None, None, (True, True), text, style=style)


def _text(text: str) -> Any:
    if "\n" in text:
        return _scalar(text, "|")
    stands_for_itself = isinstance(resolve(text), str) and not _TIME.fullmatch(text) and not _BASE60.fullmatch(text)
    return _scalar(text, None if stands_for_itself else '"')


def _number(value: int | float) -> str:
    """A number as go-yaml writes what it has read from JSON: integers of 64 bits in full, all else as Go's %g."""
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return str(value)
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    text = "".join(map(str, digits))
    power = len(text) - 1 + int(exponent)
    if text != "0" and not -4 <= power < 6:
        mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
        return f"{'-' * sign}{mantissa}e{power:+03d}"
    return f"{value:.{max(-int(exponent), 0)}f}"


def _ordered(members: dict[str, Any]) -> list[str]:
    """Keys in go-yaml's order: letters after everything else, runs of digits by their number."""
    if all(key.isascii() and key.isalpha() for key in members):
        return sorted(members)
    return sorted(members, key=cmp_to_key(_compare))


def _compare(first: str, second: str) -> int:
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            return (a > b) - (a < b) if a.isalpha() and b.isalpha() else 1 if a.isalpha() else -1
        return _compare_digits(first, second, index) or (a > b) - (a < b)
    return len(first) - len(second)


def _compare_digits(first: str, second: str, index: int) -> int:
    """How two texts that differ at `index` compare by the numbers that start or go on there."""
    lead = ""
    if "0" in (first[index], second[index]):
        before = _DIGITS_BEFORE.search(first, 0, index)
        lead = "1" if before and before.group().strip("0") else ""
    a, b = (_digits(text, index) for text in (first, second))
    return int(lead + a or "0") - int(lead + b or "0") or len(a) - len(b)


def _digits(text: str, index: int) -> str:
    match = _DIGITS.match(text, index)
    return match.group() if match else ""
