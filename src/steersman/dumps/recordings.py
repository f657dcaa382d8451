"""Files of recordings: a header, and one line of JSON for each change of an object, in the order of time.

Traces of SimKube are read, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from steersman.dumps.archives import GZIP, Bytes, Unpacked
from steersman.dumps.errors import DumpError
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.large_work.nesting import is_too_deep

KIND: Final = "Recording"
API_VERSION: Final = "simulation.steersman.dev/v1alpha1"
MOST_LINE: Final = 8 << 20
"""Most bytes of a line."""
MOST_BYTES: Final = 8 << 30
"""Most bytes of a recording, unpacked."""
MOST_TRACE: Final = 512 << 20
"""Most bytes of a trace of SimKube, which is decoded as a whole."""
_PIECE: Final = 1 << 20

Type = Literal["PRESENT", "ADDED", "MODIFIED", "DELETED"]
"""Types of changes; PRESENT is the state of an object when the recording began, or went on."""


class Header(msgspec.Struct, rename="camel"):
    """First line of a recording."""

    kind: str = ""
    api_version: str = ""


class _Line(msgspec.Struct):
    time: float
    type: Type
    object: msgspec.Raw


class Change(NamedTuple):
    """A change of an object. `time` is in seconds since 1970."""

    time: float
    type: Type
    object: dict[str, Any]


class _TraceEvent(msgspec.Struct):
    ts: int
    applied_objs: list[dict[str, Any]] = []
    deleted_objs: list[dict[str, Any]] = []


class _Trace(msgspec.Struct):
    version: int
    events: list[_TraceEvent]


_HEADER: Final = msgspec.json.Decoder(Header)
_LINE: Final = msgspec.json.Decoder(_Line)
_TRACE: Final = msgspec.msgpack.Decoder(_Trace)


def header_line() -> bytes:
    """Return the first line of a recording."""
    return encode_in_order({"kind": KIND, "apiVersion": API_VERSION}) + b"\n"


def change_line(time: float, type_: Type, obj: dict[str, Any]) -> bytes:
    """Return the line of a change."""
    return b'{"time":%.3f,"type":"%s","object":%s}\n' % (time, type_.encode(), encode_in_order(obj))


def open_to_append(path: Path) -> int:
    """Open a new recording, or an earlier one to go on with; return its descriptor.

    A line that was cut off, as by a kill, is removed. Raises DumpError for another file, OSError.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size:
            with path.open("rb") as file:
                _check_header(path, file.readline(4096))
            os.ftruncate(descriptor, _end_of_lines(descriptor, size))
        os.lseek(descriptor, 0, os.SEEK_END)
        if not size:
            os.write(descriptor, header_line())
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _end_of_lines(descriptor: int, size: int) -> int:
    """Return the size of a file up to the end of its last whole line."""
    end = size
    while end:
        begin = max(end - _PIECE, 0)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = _HEADER.decode(line)
    except msgspec.MsgspecError:
        header = Header()
    if (header.kind, header.api_version) != (KIND, API_VERSION):
        raise DumpError(f"{path}: not a recording of `steersman record`")


def read_changes(path: Path) -> Iterator[Change]:
    """Yield the changes of a recording, packed or not, or of a SimKube trace. Raises DumpError.

    A line at the end that was cut off is left out.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1)
            file.seek(0)
            if head == GZIP[:1]:
                yield from _changes(path, Unpacked(path, file))
            elif head == b"{":
                yield from _changes(path, file)
            else:
                yield from _changes_of_trace(path, file.read(MOST_TRACE + 1))
    except OSError as error:
        raise DumpError(f"{path}: {error.strerror or error}") from None


def _changes(path: Path, source: Bytes) -> Iterator[Change]:
    for number, line in enumerate(_lines(path, source)):
        try:
            if number == 0:
                _check_header(path, line)
                continue
            if is_too_deep(line):
                raise DumpError(f"{path}: line {number + 1}: exceeded max depth")
            found = _LINE.decode(line)
            obj = decode_plain(bytes(found.object))
        except msgspec.MsgspecError as error:
            raise DumpError(f"{path}: line {number + 1}: {error}") from None
        if not is_object(obj):
            raise DumpError(f"{path}: line {number + 1}: not an object of Kubernetes")
        yield Change(found.time, found.type, obj)


def _lines(path: Path, source: Bytes) -> Iterator[bytes]:
    rest, left = b"", MOST_BYTES
    while piece := source.read(_PIECE):
        left -= len(piece)
        if left < 0:
            raise DumpError(f"{path}: a recording may have at most {MOST_BYTES >> 30} GiB")
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > MOST_LINE:
            raise DumpError(f"{path}: a line of more than {MOST_LINE >> 20} MiB")


def _changes_of_trace(path: Path, data: bytes) -> Iterator[Change]:
    if len(data) > MOST_TRACE:
        raise DumpError(f"{path}: a trace may have at most {MOST_TRACE >> 20} MiB")
    try:
        trace = _TRACE.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        raise DumpError(f"{path}: neither a recording nor a trace of SimKube") from None
    known: set[tuple[str, str, str, str]] = set()
    for event in trace.events:
        for type_, objects in (("ADDED", event.applied_objs), ("DELETED", event.deleted_objs)):
            for each in objects:
                obj = _as_json(each)
                if not is_object(obj):
                    raise DumpError(f"{path}: at {event.ts}: not an object of Kubernetes")
                key = key_of(obj)
                if type_ == "DELETED":
                    known.discard(key)
                    yield Change(event.ts, "DELETED", obj)
                else:
                    yield Change(event.ts, "MODIFIED" if key in known else "ADDED", obj)
                    known.add(key)


def _as_json(obj: dict[str, Any]) -> Any:
    """Return an object of MessagePack as its JSON has it, None if that is nested too deeply or impossible."""
    try:
        data = encode_in_order(obj)
        return None if is_too_deep(data) else decode_plain(data)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def key_of(obj: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return group, kind, namespace and name of an object."""
    metadata = obj["metadata"]
    return (
        obj["apiVersion"].rpartition("/")[0],
        obj["kind"],
        metadata.get("namespace") or "",
        metadata.get("name") or "",
    )


def is_object(obj: Any) -> bool:
    """Return True if plain data has the members that every object of Kubernetes has."""
    return (
        isinstance(obj, dict)
        and isinstance(obj.get("kind"), str)
        and isinstance(obj.get("apiVersion"), str)
        and isinstance(metadata := obj.get("metadata"), dict)
        and isinstance(metadata.get("name"), str)
        and isinstance(metadata.get("namespace") or "", str)
    )
