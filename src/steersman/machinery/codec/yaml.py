"""YAML as sigs.k8s.io/yaml handles it: parsed as YAML 1.1 in the way of go-yaml v2, written from JSON with sorted keys.

Timestamps stay text, yes and on are true, numbers with a leading 0 are octal, and aliases are expanded within limits.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any, Final, NamedTuple

import msgspec
import yaml as pyyaml

from steersman.machinery.codec.serializer import encode, whole_or_float
from steersman.machinery.errors.field import format_float, quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.strings import is_letter
from steersman.machinery.large_work.nesting import MAX_DEPTH
from steersman.machinery.large_work.sizes import MAX_VALUES, too_many_objects, too_many_values
from steersman.work.patterns import late_pattern
from steersman.work.threads import give_way

MAX_BYTES_FROM_ALIASES: Final = 3 << 20
"""The most bytes of JSON that aliases may stand for altogether, as each alias is written out in full.

The limit equals that of a JSON body, so data from YAML never takes longer to encode and decode.
"""
_FEW_ALIASED, _FEW_DECODED, _ALLOWED_RATIO = 100, 1_000, 0.99
"""go-yaml's limits: in a document with more nodes than these, the share of aliased nodes may not exceed the ratio."""

_PARSER: Any = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_DUMPER: Any = getattr(pyyaml, "CSafeDumper", pyyaml.SafeDumper)

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT = late_pattern(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INTEGERS = (
    (late_pattern(r"[-+]?0[xX][0-9a-fA-F]+", re.ASCII), 16),
    (late_pattern(r"[-+]?0[bB][01]+", re.ASCII), 2),
    (late_pattern(r"[-+]?0[oO]?[0-7]+", re.ASCII), 8),
    (late_pattern(r"[-+]?(0|[1-9][0-9]*)", re.ASCII), 10),
)
_BASE60 = late_pattern(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_DAY = r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:[.,][0-9]+)?"
_TIME = late_pattern(rf"{_DAY}(?:[Tt]{_CLOCK}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})| {_CLOCK})?", re.ASCII)
"""A pattern of go-yaml's timestamps. They stay text, but are written with quotes."""
_SLASH_ESCAPE = late_pattern(r"(?:[^\\]|\\[^/])*\\/")
"""A slash with an unnecessary escape: JSON and YAML 1.2 allow the escape, go-yaml does not."""
_ONLY_ESCAPED = late_pattern("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_DIGITS = late_pattern(r"[0-9]{1,18}")
_DIGIT_CHARACTERS = "0123456789"
_PREFIX = "tag:yaml.org,2002:"
_FLOAT_TAG, _MERGE_TAG = f"{_PREFIX}float", f"{_PREFIX}merge"
_RESOLVED = frozenset({_FLOAT_TAG, f"{_PREFIX}int", f"{_PREFIX}bool", f"{_PREFIX}null"})
"""Tags of scalars that are resolved by their text, as plain scalars without a tag are."""


class YAMLError(ValueError):
    """The error for text that is not YAML with a JSON form. The message is upstream's where go-yaml has one."""


def load(data: bytes) -> tuple[Any, str]:
    """Return the first document as JSON values, and go-yaml's message about repeated keys, "" without any.

    Aliases share their value and are not copied. Raises YAMLError, and StatusError 413 for too many values.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise YAMLError("yaml: invalid leading UTF-8 octet") from None
    try:
        reader = _Reader(_PARSER(text), text if "\\/" in text else "")
        value = reader.document()
    except pyyaml.reader.ReaderError:
        raise YAMLError("yaml: control characters are not allowed") from None
    except pyyaml.MarkedYAMLError as error:
        raise YAMLError(f"yaml: {_where(error)}{error.problem or 'unknown problem parsing YAML content'}") from None
    except RecursionError:  # before MAX_DEPTH: the process keeps Python's limit
        raise YAMLError("yaml: exceeded max depth") from None
    duplicates = "yaml: unmarshal errors:\n" + "\n".join(f"  {text}" for text in reader.repeated)
    return value, duplicates if reader.repeated else ""


def load_all(data: bytes, *, most_values: int = MAX_VALUES) -> list[Any]:
    """Return all documents as JSON values, None for an empty one; together they may have `most_values` values.

    Raises YAMLError, with the line of the error, for malformed text, a repeated key in a mapping, too many values, and
    nesting beyond the recursion limit.
    """
    values = []
    for each in located_documents(data, most_values=most_values):
        if each.repeated:
            raise YAMLError(each.repeated[0])
        values.append(each.value)
    return values


class LocatedDocument(NamedTuple):
    """A document as JSON value, the line on which it begins (from 1), and messages about its repeated keys."""

    value: Any
    line: int
    repeated: list[str]


def located_documents(data: bytes, *, most_values: int = MAX_VALUES) -> Iterator[LocatedDocument]:
    """Yield all documents. Raises YAMLError as `load_all`, but not for repeated keys."""
    try:
        for each in _Reader(_PARSER(data.decode()), "", most_values).documents():
            yield each._replace(value=json_value(each.value))
    except UnicodeDecodeError as error:
        raise YAMLError(f"line {_line(data, error.start)}: the text is not UTF-8") from None
    except pyyaml.reader.ReaderError as error:
        raise YAMLError(f"line {_line(data, error.position)}: {error.reason}") from None
    except pyyaml.MarkedYAMLError as error:
        raise YAMLError(_problem(error)) from None
    except RecursionError:
        raise YAMLError("exceeded max depth") from None
    except (YAMLError, StatusError) as error:
        raise YAMLError(str(error).removeprefix("yaml: ").removeprefix("json: ")) from None


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _problem(error: pyyaml.MarkedYAMLError) -> str:
    """Return a parser's error as one line that begins with its position."""
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    begin = "" if context is None else f" that begins in line {context.line + 1}"
    during = f" {error.context}{begin}" if error.context else ""
    return f"{place}{error.problem or 'malformed YAML'}{during}"


def _where(error: pyyaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    if mark is not None and mark.line:
        line = mark.line + (1 if isinstance(error, pyyaml.scanner.ScannerError) else 0)
        return f"line {line}: "
    if error.context_mark is not None and error.context_mark.line:
        return f"line {error.context_mark.line}: "
    return ""


class _Anchored(NamedTuple):
    """The value of an anchor, with its numbers of nodes, of objects and lists, of bytes of text, and of levels."""

    value: Any
    nodes: int
    collections: int
    text_bytes: int
    levels: int


class _Reader:
    """A builder of JSON values from a parser's events.

    The parser's own composer is not used, because it recurses in C without a bound.
    """

    def __init__(self, parser: Any, text: str, most_values: int = MAX_VALUES) -> None:
        """Take the parser. `text` is its text if that may have escapes which go-yaml does not know, otherwise "".

        With more than `most_values` values, or half as many objects and lists, the text is refused.
        """
        self.repeated: list[str] = []
        self._most_values = most_values
        self._text = text
        self._next: Callable[[], Any] = parser.get_event
        self._anchors: dict[str, _Anchored] = {}
        self._open: set[str] = set()
        self._nodes = self._collections = self._text_bytes = 0
        self._aliased_nodes = self._aliased_bytes = 0
        self._depth = self._deepest = 0

    def document(self) -> Any:
        """Return the value of the first document, None if there is none."""
        while not isinstance(event := self._next(), pyyaml.DocumentStartEvent):
            if isinstance(event, pyyaml.StreamEndEvent):
                return None
        value = self._value(self._next())
        self._next()
        return value

    def documents(self) -> Iterator[LocatedDocument]:
        """Yield all documents. Raises YAMLError."""
        while not isinstance(event := self._next(), pyyaml.StreamEndEvent):
            if isinstance(event, pyyaml.DocumentStartEvent):
                self._anchors.clear()
                self.repeated = []
                root = self._next()
                line = root.start_mark.line + 1
                yield LocatedDocument(self._value(root), line, self.repeated)

    def _value(self, event: Any) -> Any:
        if isinstance(event, pyyaml.AliasEvent):
            return self._alias(event.anchor or "")
        give_way()
        nodes, collections, text_bytes = self._nodes, self._collections, self._text_bytes
        deepest = self._deepest
        self._count(nodes=1)
        if event.anchor:
            self._open.add(event.anchor)
            self._deepest = self._depth
        if isinstance(event, pyyaml.ScalarEvent):
            if self._text and event.style == '"':
                self._check_escapes(event)
            value = _scalar_value(event)
            text = event.value
            self._text_bytes += len(text) if text.isascii() and text.isprintable() else len(encode(text))
        else:
            self._count(collections=1)
            value = self._collection(event)
        if event.anchor:
            self._open.discard(event.anchor)
            self._anchors[event.anchor] = _Anchored(
                value,
                self._nodes - nodes,
                self._collections - collections,
                self._text_bytes - text_bytes,
                self._deepest - self._depth,
            )
            self._deepest = max(deepest, self._deepest)
        return value

    def _count(self, nodes: int = 0, collections: int = 0) -> None:
        """Count parts of the value. Raises StatusError 413 if there are more than an object may have."""
        self._nodes += nodes
        self._collections += collections
        if self._nodes > self._most_values:
            raise too_many_values(self._most_values)
        if self._collections > self._most_values // 2:
            raise too_many_objects(self._most_values // 2)

    def _collection(self, event: Any) -> list[Any] | dict[str, Any]:
        self._depth += 1
        self._reach(self._depth)
        value = self._sequence() if isinstance(event, pyyaml.SequenceStartEvent) else self._mapping()
        self._depth -= 1
        return value

    def _check_escapes(self, event: Any) -> None:
        """Raise YAMLError for an escaped slash."""
        start = event.start_mark
        match = _SLASH_ESCAPE.match(self._text, start.index, event.end_mark.index)
        if match:
            line = start.line + self._text.count("\n", start.index, match.end())
            raise YAMLError(f"yaml: {f'line {line + 1}: ' if line else ''}found unknown escape character")

    def _alias(self, anchor: str) -> Any:
        if anchor in self._open:
            raise YAMLError(f"yaml: anchor '{anchor}' value contains itself")
        if anchor not in self._anchors:
            raise YAMLError(f"yaml: unknown anchor '{anchor}' referenced")
        anchored = self._anchors[anchor]
        self._reach(self._depth + anchored.levels)
        self._text_bytes += anchored.text_bytes
        self._aliased_bytes += anchored.text_bytes
        self._aliased_nodes += anchored.nodes
        nodes = self._nodes + 1 + anchored.nodes  # go-yaml counts the alias too
        is_bomb = (
            self._aliased_nodes > _FEW_ALIASED and nodes > _FEW_DECODED and self._aliased_nodes / nodes > _ALLOWED_RATIO
        )
        if is_bomb or self._aliased_bytes > MAX_BYTES_FROM_ALIASES:
            raise YAMLError("yaml: document contains excessive aliasing")
        self._count(nodes=1 + anchored.nodes, collections=anchored.collections)
        return anchored.value

    def _reach(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise YAMLError("yaml: exceeded max depth")
        self._deepest = max(self._deepest, depth)

    def _sequence(self) -> list[Any]:
        items = []
        while not isinstance(event := self._next(), pyyaml.SequenceEndEvent):
            items.append(self._value(event))
        return items

    def _mapping(self) -> dict[str, Any]:
        """Return the members of a mapping: later ones replace earlier ones, and merged mappings count at their
        position.
        """
        entries: dict[str, Any] = {}
        seen: set[tuple[type, Any]] = set()
        while not isinstance(event := self._next(), pyyaml.MappingEndEvent):
            merge = _is_merge(event)
            key = self._value(event)
            event = self._next()
            value = self._value(event)
            line = event.start_mark.line + 1
            if merge:
                for each in reversed(value) if isinstance(value, list) else (value,):
                    if not isinstance(each, dict):
                        raise YAMLError("yaml: map merge requires map or sequence of maps as the value")
                    for name, item in each.items():
                        self._put(entries, seen, name, item, line)
                continue
            if isinstance(key, dict | list):
                raise YAMLError(f"yaml: invalid map key: {_shown(key)}")
            if key is None:
                raise YAMLError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_shown(value)}")
            self._put(entries, seen, key, value, line)
        return entries

    def _put(self, found: dict[str, Any], seen: set[tuple[type, Any]], key: Any, value: Any, line: int) -> None:
        if (type(key), key) in seen:
            self.repeated.append(f"line {line}: key {_shown(key)} already set in map")
        seen.add((type(key), key))
        found[_text_key(key)] = value


def _scalar_value(event: pyyaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.tag is None:
        return resolve(text) if event.implicit[0] else text
    if event.tag not in _RESOLVED:
        return text
    value = resolve(text)
    return float(value) if event.tag == _FLOAT_TAG and type(value) is int else value


def _is_merge(event: Any) -> bool:
    if not isinstance(event, pyyaml.ScalarEvent) or event.value != "<<":
        return False
    return event.implicit[0] if event.tag is None else event.tag == _MERGE_TAG


def resolve(text: str) -> Any:
    """Return the value of a plain scalar: a bool, null, a number or its text."""
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
    """Return the JSON name of a key."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        if math.isnan(key):
            return ".nan"
        return f"{key:g}" if math.isfinite(key) else ".inf" if key > 0 else "-.inf"
    return str(key)


def _shown(value: Any) -> str:
    """Return a value as Go's %#v prints it."""
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join([_shown(item) for item in value])}}}"
    if isinstance(value, dict):
        members = [f"{_shown(key)}:{_shown(item)}" for key, item in sorted(value.items())]
        return f"map[interface {{}}]interface {{}}{{{', '.join(members)}}}"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def to_json(value: Any) -> bytes:
    """Return a decoded document as JSON, keys sorted. Raises YAMLError for numbers that JSON does not have."""
    return encode(json_value(value))


def json_value(value: Any) -> Any:
    """Return a decoded document with numbers as JSON has them. Raises YAMLError for NaN and infinity."""
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise YAMLError(f"json: unsupported value: {shown}")
        return whole_or_float(value)
    return value


def json_as_yaml(value: Any) -> bytes:
    """Return a value as JSON that is YAML, too, for bodies of server-side apply.

    YAML 1.1 knows no pairs of surrogates, so characters stand for themselves, apart from those that it has only as escapes.
    """
    text = json.dumps(value, ensure_ascii=False)
    return _ONLY_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def from_json(data: bytes) -> bytes:
    """Return a JSON document as YAML, keys in go-yaml's order. Raises msgspec.DecodeError."""
    value = msgspec.json.decode(data)
    written = io.StringIO()
    dumper = _DUMPER(written, width=80, allow_unicode=True)
    emit: Callable[[Any], None] = dumper.emit
    try:
        emit(pyyaml.StreamStartEvent())
        emit(pyyaml.DocumentStartEvent(explicit=False))
        _emit(value, emit)
        emit(pyyaml.DocumentEndEvent(explicit=False))
        emit(pyyaml.StreamEndEvent())
    finally:
        dumper.dispose()
    text = written.getvalue()
    if text.endswith("\n...\n"):  # the end marker of the document, not the end of a text
        text = text[:-4]
    return text.encode()


def _emit(value: Any, emit: Callable[[Any], None]) -> None:
    give_way()
    if isinstance(value, dict):
        emit(pyyaml.MappingStartEvent(None, None, True, flow_style=False))
        for key in _ordered(value):
            emit(_text(key))
            _emit(value[key], emit)
        emit(pyyaml.MappingEndEvent())
    elif isinstance(value, list):
        emit(pyyaml.SequenceStartEvent(None, None, True, flow_style=False))
        for item in value:
            _emit(item, emit)
        emit(pyyaml.SequenceEndEvent())
    elif isinstance(value, str):
        emit(_text(value))
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        emit(_scalar(_number(value) if is_number else msgspec.json.encode(value).decode(), None))


def _scalar(text: str, style: str | None) -> Any:
    return pyyaml.ScalarEvent(None, None, (True, True), text, style=style)


def _text(text: str) -> Any:
    if "\n" in text:
        return _scalar(text, "|")
    stands_for_itself = isinstance(resolve(text), str) and not _TIME.fullmatch(text) and not _BASE60.fullmatch(text)
    return _scalar(text, None if stands_for_itself else '"')


def _number(value: int | float) -> str:
    """Return a number as go-yaml writes one from JSON: integers of 64 bits in full, all others as Go's %g."""
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return str(value)
    return format_float(value)


def _ordered(members: dict[str, Any]) -> list[str]:
    """Return keys in go-yaml's order: letters after all other characters, runs of digits by their number."""
    if all(key.isascii() and is_letter(key) for key in members):
        return sorted(members)
    return sorted(members, key=cmp_to_key(_compare))


def _compare(first: str, second: str) -> int:
    give_way()
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a == b:
            continue
        if is_letter(a) or is_letter(b):
            return (a > b) - (a < b) if is_letter(a) and is_letter(b) else 1 if is_letter(a) else -1
        return _compare_digits(first, second, index) or (a > b) - (a < b)
    return len(first) - len(second)


def _compare_digits(first: str, second: str, index: int) -> int:
    """Compare two texts that differ at `index` by the numbers that start or continue there."""
    lead = ""
    if "0" in (first[index], second[index]):
        before = first[:index]
        lead = "1" if before[len(before.rstrip(_DIGIT_CHARACTERS)) :].strip("0") else ""
    a, b = (_digits(text, index) for text in (first, second))
    return int(lead + a or "0") - int(lead + b or "0") or len(a) - len(b)


def _digits(text: str, index: int) -> str:
    match = _DIGITS.match(text, index)
    return match.group() if match else ""
