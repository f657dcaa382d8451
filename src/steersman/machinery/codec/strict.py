"""Decoding of clients' documents: fast for correct ones, and with upstream's errors and warnings for others.

`decode_object` first tries the class's msgspec decoder. Only if that fails, or a member is repeated, is the document
decoded again, member by member along the Go types, as sigs.k8s.io/json does: null means unset, names are
case-sensitive, the first wrong type is reported, and unknown and repeated members are reported by their paths.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
import orjson
from msgspec import Struct, field

from steersman.machinery.codec.derived_types import type_of
from steersman.machinery.codec.go_types import STRING, GoType, members_of, struct
from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, error_message, syntax_error
from steersman.machinery.codec.json_tree import (
    JSONSyntaxError,
    Members,
    Number,
    Tree,
    decode_text,
    kind_of,
    parse_tree,
    render,
    too_large,
)
from steersman.machinery.codec.serializer import (
    compact,
    decode_as_sent,
    decode_plain,
    decoder,
    encode,
    encode_in_order,
    whole_or_float,
)
from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import to_lower
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.values import durations, quantity, times
from steersman.work.patterns import late_pattern
from steersman.work.threads import give_way

T = TypeVar("T")

Media = Literal["json", "yaml"]

MAX_STRICT_ERRORS: Final = 100

_SHORT: Final = 4096
"""Bytes of a document up to which it is decoded without giving way in between: that takes some microseconds."""

_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint8": (0, 255)}
_ABSENT: Final = object()
_TYPE_META_TYPE = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


class DecodeError(ValueError):
    """The error for a document that cannot be decoded, with upstream's message."""


class TypeMismatch(DecodeError):
    """A value that does not fit the type of its member (Go's UnmarshalTypeError).

    `struct` and `fields` identify the position: the struct that has the member, and the path from the outermost struct.
    """

    def __init__(self, value: str, shown: str, struct: str, fields: Sequence[str]) -> None:
        where = f"struct field {struct}.{'.'.join(fields)}" if fields else "value"
        super().__init__(f"json: cannot unmarshal {value} into Go {where} of type {shown}")
        self.value = value
        self.shown = shown
        self.fields = tuple(fields)


class Decoded(Struct, Generic[T], frozen=True):
    """A decoded object, and the strict errors of its document, in upstream's order."""

    obj: T
    warnings: list[str] = field(default_factory=list)


def strict_error(warnings: list[str]) -> str:
    """Return the message with which a strict request is refused."""
    return f"strict decoding error: {', '.join(warnings)}"


def decode_object(
    cls: type[T],
    data: bytes,
    media: Media,
    *,
    want_strict: bool,
    as_sent: bool = False,
    is_peeked: bool = False,
    is_ours: bool = False,
) -> Decoded[T]:
    """Decode an object of `cls`, a generated class, or dict for an object without a class. Raises DecodeError.

    Without `want_strict` no warnings are collected. With `as_sent` the data of RawExtensions is kept to the byte,
    unless the document has line breaks, as watch events must be one line; otherwise its white space is removed.
    `is_peeked` means that `peek_type_meta` has already found the document not to be nested too deeply. `is_ours` means
    that this server wrote the document, so no member is repeated.
    """
    warnings: list[str] = []
    if media == "yaml":
        data, warnings = _from_yaml(data, want_strict=want_strict)
    try:
        if not (is_peeked or is_ours):
            _check_depth(data)
        if len(data) > _SHORT:
            give_way()
        text = compact(data) if cls is not dict and _is_to_be_compacted(data, as_sent=as_sent) else data
        obj = _decode_plain_object(data) if cls is dict else decoder(cls).decode(text)
        if len(data) > _SHORT:
            give_way()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    else:
        if is_ours or media == "yaml" or _is_as_we_write(data, obj) or has_unique_members(text):
            return Decoded(obj, warnings)
    slow = _decode_slowly(cls, data, want_strict=want_strict)
    return Decoded(slow.obj, warnings + slow.warnings)


_KIND: Final = b'{"kind":"'
_SPACE: Final = ord(" ")
_BACKSLASH: Final = ord("\\")
"""A byte is found much faster than a text of several, which most documents are then not searched for."""


def _is_as_we_write(data: bytes, obj: Any) -> bool:
    """Return True if it says what it says once, in our order, which is that of Go's clients: kind first."""
    return data.startswith(_KIND) and encode(obj) == data


def _check_depth(data: bytes) -> None:
    """Raise DecodeError for JSON that is nested too deeply, or malformed before that depth is reached."""
    if is_too_deep(data):
        raise DecodeError(syntax_error(data) or MAX_DEPTH_TEXT)


def decode_untyped(data: bytes, *, as_sent: bool = False) -> Any:
    """Decode JSON without a type, such as a patch, as dicts and lists. Raises DecodeError.

    Floats without a fraction become ints unless `as_sent`. The last of repeated members counts.
    """
    _check_depth(data)
    try:
        return decode_as_sent(data) if as_sent else decode_plain(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _read_untyped(data, Reader())


def duplicate_members(data: bytes, value: Any) -> list[str]:
    """Return strict errors about the repeated members of valid JSON, by their paths.

    `value` is the decoded document. Raises DecodeError for too deep nesting.
    """
    if is_as_long_as(data, value) or has_unique_members(data):
        return []
    reader = Reader()
    _read_untyped(data, reader)
    return reader.strict_errors


def _read_untyped(data: bytes, reader: Reader) -> Any:
    try:
        return reader.read(_ANY, parse_tree(data))
    except JSONSyntaxError as error:
        raise DecodeError(str(error)) from None


def _decode_plain_object(data: bytes) -> Any:
    obj = decode_plain(data)
    if not isinstance(obj, dict):
        raise DecodeError(f"json: cannot unmarshal {kind_of(obj)} into Go value of type map[string]interface {{}}")
    return obj


def _from_yaml(data: bytes, *, want_strict: bool) -> tuple[bytes, list[str]]:
    from steersman.machinery.codec import yaml  # most servers never see any

    try:
        value, duplicates = yaml.load(data)
        return yaml.to_json(value), [duplicates] if duplicates and want_strict else []
    except yaml.YAMLError as error:
        raise DecodeError(str(error)) from None


def yaml_as_json(data: bytes) -> bytes:
    """Return the first document of YAML text as JSON, keys sorted. Raises DecodeError."""
    return _from_yaml(data, want_strict=False)[0]


def _is_to_be_compacted(data: bytes, *, as_sent: bool) -> bool:
    """Return True if there is white space between tokens, which raw parts must not keep."""
    return data.find(b"\n", 0, -1) >= 0 or (not as_sent and _SPACE in data and data.find(b'": ') >= 0)


_ESCAPED = ((b"\\u003c", b"<"), (b"\\u003e", b">"), (b"\\u0026", b"&"))


def has_unique_members(data: bytes) -> bool:
    """Return True if no object has a repeated member: the text is as long as the encoding of its decoded form then.

    Returns False for text that cannot be checked in this way (unusual escapes or numbers, malformed text).
    """
    if _BACKSLASH in data and data.find(b"\\u00") >= 0:
        for escape, char in _ESCAPED:
            data = data.replace(escape, char)
    if len(data) > _SHORT:
        give_way()
    try:
        length = len(orjson.dumps(orjson.loads(data)))
        return length == len(data) or length == len(compact(data))
    except (ValueError, TypeError, msgspec.MsgspecError):
        return False


def is_as_long_as(data: bytes, value: Any) -> bool:
    """Return True if a value has as much to say as the text that it was decoded from, which has no white space then.

    No object in that text has a member twice.
    """
    try:
        return len(orjson.dumps(value)) == len(data)
    except TypeError:
        return False  # an integer is too large


def decode_as(type_: GoType, data: bytes, media: Media, *, want_strict: bool) -> Decoded[Any]:
    """Decode plain data as a Go type takes it, for types without a generated class. Raises DecodeError."""
    warnings: list[str] = []
    if media == "yaml":
        data, warnings = _from_yaml(data, want_strict=want_strict)
    read = _read_as(type_, data, want_strict=want_strict)
    return Decoded(read.obj, warnings + read.warnings)


def _read_as(type_: GoType, data: bytes, *, want_strict: bool) -> Decoded[Any]:
    try:
        tree = parse_tree(data)
    except JSONSyntaxError as error:
        raise DecodeError(str(error)) from None
    reader = Reader()
    plain = reader.read(type_, tree)
    return Decoded(plain, reader.strict_errors if want_strict else [])


def _decode_slowly(cls: type[T], data: bytes, *, want_strict: bool) -> Decoded[T]:
    if cls is dict:
        return _read_as(_MAP, data, want_strict=want_strict)
    read = _read_as(type_of(cls), data, want_strict=want_strict)
    plain = {} if read.obj is None else read.obj
    try:
        return Decoded(decoder(cls).decode(encode_in_order(plain)), read.warnings)
    except msgspec.MsgspecError as error:
        raise DecodeError(error_message(error)) from None


_ANY = GoType("any", "interface {}")
_MAP = GoType("map", "map[string]interface {}", element=_ANY)
_STRINGS = GoType("list", "[]string", element=STRING)


class Reader:
    """A decoder of trees into plain data by Go type.

    `strict_errors` collects messages about unknown and repeated members, each once, at most MAX_STRICT_ERRORS.
    """

    def __init__(self) -> None:
        self.strict_errors: list[str] = []
        self._path: list[str] = []
        self._struct = ""
        self._fields: list[str] = []
        self._error: DecodeError | None = None

    def read(self, type_: GoType, tree: Tree) -> Any:
        """Return the value in wire form, None for null.

        Raises DecodeError with the error of Go's decoder.
        """
        try:
            value = self._value(type_, tree, _ABSENT)
        except TypeMismatch as error:
            if not self._fields:
                raise
            raise TypeMismatch(error.value, error.shown, self._struct, (*self._fields, *error.fields)) from None
        if self._error is not None:
            raise self._first_error()
        return None if value is _ABSENT else value

    def _first_error(self) -> DecodeError:
        """Return the first error and drop the reference to it.

        A raised error refers to its frames, and so to all decoded data, so it must not be kept.
        """
        error, self._error = self._error, None
        assert error is not None
        return error

    def _value(self, type_: GoType, tree: Tree, old: Any) -> Any:
        """Return the decoded value; `old` if `tree` sets none, where `old` may be _ABSENT."""
        give_way()
        if type_.kind == "own":
            return self._own(type_, tree, old)
        if tree is None:
            return _ABSENT if type_.pointer or type_.kind in ("map", "list", "bytes", "any") else old
        if type_.kind == "any":
            return self._any(tree)
        match tree:
            case Members():
                return self._object(type_, tree, old)
            case list():
                return self._array(type_, tree, old)
            case Number():
                return self._number(type_, tree, old)
            case bool():
                return tree if type_.kind == "bool" else self._wrong("bool", type_, old)
        if type_.kind == "string":
            return tree
        if type_.kind == "bytes":
            return self._bytes(tree, old)
        return self._wrong("string", type_, old)

    def _wrong(self, value: str, type_: GoType, old: Any) -> Any:
        if self._error is None:
            self._error = TypeMismatch(value, type_.shown, self._struct, self._fields)
        return old

    def _number(self, type_: GoType, text: str, old: Any) -> Any:
        if limits := _RANGES.get(type_.kind):
            try:
                number = int(text) if len(text) < 40 else None
            except ValueError:
                number = None
            if number is None or not limits[0] <= number <= limits[1]:
                return self._wrong(f"number {text}", type_, old)
            return number
        if type_.kind == "float64":
            value = float(text)
            if math.isinf(value):
                return self._wrong(f"number {text}", type_, old)
            return whole_or_float(value)
        return self._wrong("number", type_, old)

    def _bytes(self, text: str, old: Any) -> Any:
        cleaned = text.replace("\r", "").replace("\n", "")
        try:
            base64.b64decode(cleaned, validate=True)
        except (binascii.Error, ValueError):
            self._error = self._error or DecodeError(_base64_error(text))
            return old
        if "=" in cleaned.rstrip("=") or len(cleaned) % 4:
            self._error = self._error or DecodeError(_base64_error(text))
            return old
        return cleaned

    def _array(self, type_: GoType, items: list[Tree], old: Any) -> Any:
        element = type_.element
        if type_.kind == "bytes":
            element = GoType("uint8", "uint8")
        elif type_.kind != "list":
            return self._wrong("array", type_, old)
        assert element is not None
        previous = old if isinstance(old, list) else []
        elements: list[Any] = []
        depth = len(self._path)
        for index, item in enumerate(items):
            self._path.append(f"[{index}]")
            value = self._value(element, item, previous[index] if index < len(previous) else _ABSENT)
            elements.append(zero(element) if value is _ABSENT else value)
            del self._path[depth:]
        if type_.kind == "bytes":
            return base64.b64encode(bytes(elements)).decode()
        return elements

    def _object(self, type_: GoType, members: Members, old: Any) -> Any:
        if type_.kind == "map":
            return self._map(type_, members, old)
        if type_.kind != "struct":
            return self._wrong("object", type_, old)
        members_read: dict[str, Any] = (
            old if isinstance(old, dict) else {}
        )  # the caller replaces its old value by the result
        known = members_of(type_)
        seen: set[str] = set()
        outer = self._struct
        depth, fields = len(self._path), len(self._fields)
        for name, tree in members:
            member = known.get(name)
            if member is None:
                self._strict("unknown", name)
                continue
            if name in seen:
                self._strict("duplicate", name)
            seen.add(name)
            self._struct = type_.shown.rpartition(".")[2]
            self._fields += (*member.embedded, name)
            self._path.append(f".{name}" if depth else name)
            value = self._value(member.type, tree, members_read.get(name, _ABSENT))
            if value is _ABSENT:
                members_read.pop(name, None)
            else:
                members_read[name] = value
            del self._path[depth:], self._fields[fields:]
            self._struct = outer
        return members_read

    def _map(self, type_: GoType, members: Members, old: Any) -> Any:
        element = type_.element
        assert element is not None
        entries: dict[str, Any] = old if isinstance(old, dict) else {}
        seen: set[str] = set()
        depth = len(self._path)
        for name, tree in members:
            if name in seen:
                self._strict("duplicate", name)
            seen.add(name)
            self._path.append(f".{name}" if depth else name)
            value = self._value(element, tree, _ABSENT)
            entries[name] = zero(element) if value is _ABSENT else value
            del self._path[depth:]
        return entries

    def _any(self, tree: Tree) -> Any:
        if isinstance(tree, Members):
            return self._map(_MAP, tree, _ABSENT)
        if isinstance(tree, list):
            return self._array(GoType("list", "", element=_ANY), tree, _ABSENT)
        if isinstance(tree, Number):
            return self._untyped_number(tree)
        return tree

    def _untyped_number(self, text: str) -> Any:
        if "." not in text and len(text) < 40:
            try:
                number = int(text)
            except ValueError:
                pass  # it has an exponent
            else:
                if -(2**63) <= number < 2**63:
                    return number
        value = float(text)
        if math.isinf(value):
            return self._wrong(f"number {text}", GoType("float64", "float64"), None)
        return whole_or_float(value)

    def _strict(self, kind: str, name: str) -> None:
        if len(self.strict_errors) >= MAX_STRICT_ERRORS:
            return
        path = f"{''.join(self._path)}.{name}" if self._path else name
        text = f"{kind} field {quote(path)}"
        if text not in self.strict_errors:
            self.strict_errors.append(text)

    def _own(self, type_: GoType, tree: Tree, old: Any) -> Any:
        """Decode a value of a type that has its own UnmarshalJSON."""
        name = type_.name.rpartition(".")[2]
        if tree is None and type_.pointer:
            return _ABSENT
        if name in ("RawExtension", "FieldsV1", "Unknown"):
            return old if tree is None else msgspec.Raw(render(tree))
        if name == "JSON":
            if tree is None:
                return old
            try:
                return decode_plain(render(tree))
            except msgspec.MsgspecError:
                text = f"json: cannot unmarshal number {too_large(tree)} into Go value of type float64"
                raise DecodeError(text) from None
        if name.startswith("JSONSchemaProps"):
            return _schema_or(name, tree)
        if name == "IntOrString":
            return _int_or_string(tree)
        if tree is None:
            if name != "Duration":
                return _ABSENT
            tree = ""  # Go parses null as empty text here, which is not a duration
        try:
            if name == "Quantity":
                text = tree if isinstance(tree, str) else render(tree).decode()
                return quantity.canonical_of_json(str(text))
            if not isinstance(tree, str) or isinstance(tree, Number):
                raise TypeMismatch(kind_of(tree), "string", "", ())
            canonical = {
                "Time": times.canonical_time,
                "MicroTime": times.canonical_micro_time,
                "Duration": durations.canonical_duration,
            }[name](tree)
        except (quantity.QuantityError, times.TimeError, durations.DurationError) as error:
            raise DecodeError(str(error)) from None
        return _ABSENT if canonical is None else canonical


def _int_or_string(tree: Tree) -> Any:
    if tree is None:
        return 0
    if isinstance(tree, str) and not isinstance(tree, Number):
        return tree
    return Reader().read(GoType("int32", "int32"), tree)


def _schema_or(name: str, tree: Tree) -> Any:
    """Decode a JSONSchemaPropsOr...; like upstream, unknown members inside are not reported."""
    if isinstance(tree, Members):
        return Reader().read(struct("apiextensions.v1.JSONSchemaProps"), tree)
    if name == "JSONSchemaPropsOrBool":
        if not isinstance(tree, bool):
            raise DecodeError("boolean or JSON schema expected")
        return tree
    if not isinstance(tree, list) or not tree:
        return _ABSENT
    if name == "JSONSchemaPropsOrStringArray":
        return Reader().read(_STRINGS, tree)
    schemas = GoType("list", "[]v1.JSONSchemaProps", element=struct("apiextensions.v1.JSONSchemaProps"))
    return Reader().read(schemas, tree)


def zero(type_: GoType) -> Any:
    """Return the wire form of a null list item or map value."""
    if type_.pointer:
        return None
    if type_.kind == "own":
        return {"Quantity": "0", "Duration": "0s", "IntOrString": 0}.get(type_.name.rpartition(".")[2])
    zeros: dict[str, Any] = {"string": "", "bool": False, "struct": {}, "map": {}, "list": [], "bytes": "", "any": None}
    return zeros.get(type_.kind, 0)


_BASE64 = late_pattern(r"[A-Za-z0-9+/\r\n]*")


def _base64_error(text: str) -> str:
    """Return the message of Go's base64 decoder for text that is not base64."""
    match = _BASE64.match(text)
    position = match.end() if match else 0
    data = decode_text(text.encode("utf-8", "replace"))
    if position == len(data):
        return f"illegal base64 data at input byte {_quantum_start(text)}"
    if data[position] == "=":
        return f"illegal base64 data at input byte {_padding_error(text, position)}"
    return f"illegal base64 data at input byte {len(data[:position].encode())}"


def _quantum_start(text: str) -> int:
    """Return the offset of the last, incomplete group of four: Go counts back from the end by the group's length."""
    letters = len(text.replace("\r", "").replace("\n", "")) % 4
    return len(text) - letters


def _padding_error(text: str, position: int) -> int:
    """Return the offset that Go reports for wrong padding at `position`."""
    letters = len(text[:position].replace("\r", "").replace("\n", "")) % 4
    if letters < 2:
        return position
    index = position + 1
    while index < len(text) and text[index] in "\r\n":
        index += 1
    if letters == 2:
        if index == len(text):
            return len(text)
        if text[index] != "=":
            return index - 1
        index += 1
    while index < len(text) and text[index] in "\r\n":
        index += 1
    return index if index < len(text) else position


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


_TYPE_META_DECODER = msgspec.json.Decoder(_TypeMeta)


def peek_type_meta(data: bytes, media: Media = "json") -> tuple[str, str]:
    """Return the apiVersion and kind of a document, "" for a missing one. Raises DecodeError."""
    if media == "yaml":
        data, _ = _from_yaml(data, want_strict=False)
    if is_too_deep(data):
        return _peek_slowly(data)
    try:
        meta = _TYPE_META_DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _peek_slowly(data)
    return (meta.api_version, meta.kind) if meta.api_version and meta.kind else _peek_slowly(data)


def _peek_slowly(data: bytes) -> tuple[str, str]:
    """Return apiVersion and kind as Go's standard decoder does: names in any case, nulls ignored."""
    prefix = "couldn't get version/kind; json parse error: "
    try:
        tree = parse_tree(data)
    except JSONSyntaxError as error:
        raise DecodeError(prefix + str(error)) from None
    type_meta = {"apiversion": "", "kind": ""}
    if tree is None:
        return "", ""
    if not isinstance(tree, Members):
        raise DecodeError(f"{prefix}json: cannot unmarshal {kind_of(tree)} into Go value of type {_TYPE_META_TYPE}")
    wrong = ""
    for name, value in tree:
        key = to_lower(name)
        if key not in type_meta or value is None:
            continue
        if isinstance(value, str) and not isinstance(value, Number):
            type_meta[key] = value
        elif not wrong:
            wire = "apiVersion" if key == "apiversion" else "kind"
            wrong = f"json: cannot unmarshal {kind_of(value)} into Go struct field .{wire} of type string"
    if wrong:
        raise DecodeError(prefix + wrong)
    return type_meta["apiversion"], type_meta["kind"]
