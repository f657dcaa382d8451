"""Protobuf messages encoded directly from stored JSON, with a cache for parts that recur.

The Pods of a ReplicaSet have equal tolerations, probes and ports, and a changed object keeps most of its parts. So the
message of a nested struct is first looked up by the struct's JSON. For that each class has a sketch: a class with the
same members, of which nested structs stay JSON (`msgspec.Raw`). A class that cannot have a sketch (it has a map of
messages, or a JSON schema) is decoded as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from steersman.machinery.codec.protobuf.encode import delimited, write_message
from steersman.machinery.codec.protobuf.tables import (
    BOOL,
    BYTES,
    INT32,
    INT64,
    INT_OR_STRING,
    ITEMS,
    MAP,
    MESSAGE,
    MESSAGES,
    NUMBERS,
    PART,
    PARTS,
    QUANTITY,
    RAW,
    STRING,
    STRINGS,
    TIME,
    Message,
    Writer,
    message_of,
)
from steersman.machinery.codec.serializer import decoder
from steersman.work.threads import paced

_LOOKED_UP: Final = 2048
"""Bytes of the longest JSON that is looked up in the cache."""
_REMEMBERED: Final = 2048
"""Entries of the cache (messages and lists of messages), which take at most some 8 MB."""
_TYPES: Final[dict[int, Any]] = {
    STRING: str,
    TIME: str,
    QUANTITY: str,
    BOOL: bool,
    INT32: int,
    INT64: int,
    INT_OR_STRING: int | str,
    BYTES: bytes,
    STRINGS: list[str],
    ITEMS: list[str],
    NUMBERS: list[int | bool],
    MESSAGE: msgspec.Raw,
    MESSAGES: msgspec.Raw,
    RAW: msgspec.Raw,
}
"""Types of a sketch's members, by the kind of field. The stored JSON of these kinds is canonical."""

_LIST = msgspec.json.Decoder(list[msgspec.Raw] | None)


def transcode(cls: type[msgspec.Struct], data: bytes) -> bytes:
    """Return the message of an object of `cls` from JSON that this server has stored.

    The result equals the encoding of the decoded object. Raises NotMarshalableError, and msgspec.DecodeError for JSON
    that this server would not write.
    """
    return _part(message_of(cls)).encode(data)


class Part:
    """An encoder of one Go struct's JSON into its message. The plan of the sketch is computed at first use."""

    __slots__ = ("_decoder", "_message", "_plan")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._plan: Message | None = None
        self._decoder: msgspec.json.Decoder[Any]

    def encode(self, data: bytes) -> bytes:
        """Return the message of the JSON in `data`."""
        plan = self._plan or self._prepare()
        return write_message(plan, self._decoder.decode(data))

    def known(self, data: msgspec.Raw) -> bytes | None:
        """Return the message of the JSON in `data`, from the cache if it is there; None for null."""
        text = bytes(data)
        if text == b"null":
            return None
        return _encoded(self, text) if len(text) <= _LOOKED_UP else self.encode(text)

    def _prepare(self) -> Message:
        plan = _sketched(self._message)
        self._decoder = decoder(plan.cls)
        self._plan = plan
        return plan


class Parts:
    """An encoder of a list of messages, each with its key before it."""

    __slots__ = ("_heads", "_key", "_part")

    def __init__(self, part: Part, writer: Writer) -> None:
        self._part = part
        self._key = writer.key
        self._heads = writer.heads

    def encode(self, data: bytes) -> bytes:
        """Return the messages of the JSON array in `data`."""
        pieces: list[bytes] = []
        for item in paced(_LIST.decode(data) or ()):
            body = self._part.known(item) or b""
            pieces.append(self._heads[len(body)] + body if len(body) < 128 else self._key + delimited(body))
        return b"".join(pieces)

    def known(self, data: msgspec.Raw) -> bytes:
        """Return the messages of the JSON array in `data`, from the cache if they are there."""
        text = bytes(data)
        return _encoded(self, text) if len(text) <= _LOOKED_UP else self.encode(text)


@lru_cache(maxsize=_REMEMBERED)
def _encoded(part: Part | Parts, data: bytes) -> bytes:
    return part.encode(data)


@lru_cache(maxsize=4096)
def _part(message: Message) -> Part:
    return Part(message)


def _sketched(message: Message) -> Message:
    """Return the plan of a struct's sketch, or the struct's own plan if it cannot have a sketch."""
    if message.readers is None:
        message.completed()
    types: dict[str, Any] = {}
    for attribute, writer in _written(message):
        type_ = _type(writer)
        if type_ is None:
            return message
        types[attribute] = type_
    cls, blank = message.cls, message.cls()
    names = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    sketch = msgspec.defstruct(
        cls.__name__,
        [
            (name, types.get(name, Any), msgspec.field(name=encoded, default=_default(types, name, blank)))
            for name, encoded in names
        ],
        gc=False,
    )
    return _plan(message, sketch, blank)


def _default(types: dict[str, Any], name: str, blank: msgspec.Struct) -> Any:
    return None if types.get(name) is msgspec.Raw else getattr(blank, name)


def _type(writer: Writer) -> Any:
    """Return the type of a member in a sketch, None if a sketch cannot have the member."""
    kind, element = writer.kind, writer.element
    if kind != MAP:
        type_ = _TYPES.get(kind)
    elif (values := _TYPES.get(element.kind)) is not None and values is not msgspec.Raw:
        type_ = dict[str, values | None]  # type: ignore[valid-type]
    else:
        return None
    return type_ if type_ in (None, msgspec.Raw) else type_ | None


def _written(message: Message) -> Iterator[tuple[str, Writer]]:
    """Yield the members of a struct that are written, including members of embedded structs."""
    names = message.cls.__struct_fields__
    picked = names if message.pick is None else message.pick(names)
    yield from zip(picked, message.writers, strict=True)
    for *_, element in message.embedded:
        if element.readers is None:
            element.completed()
        yield from _written(element)


def _plan(message: Message, sketch: type[msgspec.Struct], blank: Any) -> Message:
    """Return the plan of a struct with the sketch in the place of its class."""
    if message.readers is None:
        message.completed()
    plan = Message(message.module, message.name, sketch)
    plan.readers, plan.pick, plan.nullable = message.readers, message.pick, message.nullable
    plan.blank = message.blank.copy()
    plan.embedded = tuple(
        (place, key, heads, _plan(element, sketch, blank)) for place, key, heads, element in message.embedded
    )
    members = msgspec.structs.astuple(blank)
    values = members if message.pick is None else message.pick(members)
    writers = []
    for writer in message.writers:
        if writer.kind == MESSAGE:
            if (value := values[writer.at]) is not None:
                plan.blank[writer.place] = writer.key + delimited(write_message(writer.element, value))
            writer = writer._replace(kind=PART, element=_part(writer.element))
        elif writer.kind == MESSAGES:
            writer = writer._replace(kind=PARTS, element=Parts(_part(writer.element), writer))
        writers.append(writer)
    plan.writers = tuple(writers)
    return plan
