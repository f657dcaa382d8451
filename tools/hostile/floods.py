"""Floods of bytes that no client library would send: pipelines, chunks, frames and header blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from .case import CROWDED, NAMESPACE, NARROW, Bytes, Case, Message, Target, Unread
from .sending import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    header_frames,
)

_CONFIGMAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_GET_LIVEZ: Final = b"\x82\x87\x84\x41\x01a"
"""GET https://a/ by indexes of the static table; the path is `/`."""


def cases() -> Iterator[Case]:
    for name, http1 in _HTTP1.items():
        yield _case(f"floods/http1/{name}", http1, "http/1.1")
    for name, http2 in _HTTP2.items():
        yield _case(f"floods/http2/{name}", http2, "h2")
    yield from _unread()


def _case(name: str, write: Callable[[int], bytes], protocol: str) -> Case:
    def make(size: int, target: Target) -> Message:
        return Bytes(write(size), protocol)

    return Case(name, make, name, 1_000_000)


# HTTP/1.1


def _head(path: str, *more: str, token: str = NARROW) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: a", *([f"Authorization: Bearer {token}"] if token else []), *more]
    return "\r\n".join([*lines, "\r\n"]).encode()


def _pipelined(path: str, token: str = "") -> Callable[[int], bytes]:
    def write(size: int) -> bytes:
        one = _head(path, token=token)
        return one * (size // len(one)) + _head(path, "Connection: close", token=token)

    return write


def _posted(*more: str) -> bytes:
    return _head(f"{_CONFIGMAPS}?dryRun=All", "Content-Type: application/json", "Connection: close", *more).replace(
        b"GET", b"POST", 1
    )


def _chunked(chunk: bytes, end: bytes = b"0\r\n\r\n") -> Callable[[int], bytes]:
    return lambda size: _posted("Transfer-Encoding: chunked") + chunk * (size // len(chunk)) + end


_HTTP1: Final[dict[str, Callable[[int], bytes]]] = {
    "pipelined-livez": _pipelined("/livez"),
    "pipelined-ping": _pipelined("/livez/ping"),
    "pipelined-unknown": _pipelined("/none"),
    "pipelined-version": _pipelined("/version"),
    "pipelined-refused": _pipelined(_CONFIGMAPS),
    "pipelined-lists": _pipelined(_CONFIGMAPS, NARROW),
    "pipelined-bad": lambda size: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * (size // 30) + b"GET\r\n\r\n",
    "empty-lines": lambda size: b"\r\n" * (size // 2) + _head("/livez", "Connection: close"),
    "chunks-of-one": _chunked(b"1\r\n \r\n"),
    "chunks-of-none": _chunked(b"1;" + b"a" * 100 + b"\r\n \r\n"),
    "chunk-extension": lambda size: _posted("Transfer-Encoding: chunked") + b"1;" + b"a" * size + b"\r\n \r\n0\r\n\r\n",
    "trailers": lambda size: _posted("Transfer-Encoding: chunked") + b"0\r\n" + b"a: b\r\n" * (size // 6) + b"\r\n",
    "short-headers": lambda size: _head("/livez", "Connection: close", *["a:b"] * (size // 5)),
    "folded-header": lambda size: _head("/livez", "Connection: close", "a: b" + "\r\n b" * (size // 4)),
    "long-method": lambda size: b"A" * size + b" / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "long-version": lambda size: b"GET / HTTP/" + b"1" * size + b"\r\nHost: a\r\n\r\n",
    "long-target": lambda size: _head("/" + "a" * size, "Connection: close", token=""),
    "no-end": lambda size: b"GET / HTTP/1.1\r\n" + b"a" * size,
    "long-length": lambda size: _head("/livez", "Connection: close", "Content-Length: " + "0" * size),
}


# HTTP/2


def _literal(name: bytes, value: bytes, *, indexed: bool = False) -> bytes:
    """A field with a name of its own, added to the table or not."""
    return (b"\x40" if indexed else b"\0") + _text(name) + _text(value)


def _text(data: bytes) -> bytes:
    length = len(data)
    if length < 127:
        return bytes([length]) + data
    rest, found = length - 127, bytearray([127])
    while rest >= 128:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest]) + data


def _streams(
    block: bytes, first: bytes | None = None, more: Callable[[int], bytes] = lambda _: b""
) -> Callable[[int], bytes]:
    """Streams with that header block each, `first` with the first one; `more` follows each stream's block."""

    def write(size: int) -> bytes:
        each = len(header_frames(1, block)) + len(more(1))
        parts = [header_frames(1, first)] if first is not None else []
        for number in range(max(size // each, 1)):
            stream = 2 * (number + len(parts[:1])) + 1
            parts += [header_frames(stream, block), more(stream)]
        return b"".join(parts)

    return write


def _referenced(size: int) -> bytes:
    """A field of 1,000 bytes is put into the table once, and named again by a byte of an index many times over."""
    first = _GET_LIVEZ + _literal(b"a", b"b" * 1000, indexed=True)
    return _streams(_GET_LIVEZ + b"\xbe" * 950, first)(size)


def _block(unit: bytes) -> Callable[[int], bytes]:
    return lambda size: header_frames(1, _GET_LIVEZ + unit * (size // len(unit)))


def _frames(kind: int, flags: int, stream: int, payload: bytes) -> Callable[[int], bytes]:
    one = frame(kind, flags, stream, payload)
    return lambda size: one * (size // len(one))


def _body(one: bytes) -> Callable[[int], bytes]:
    """DATA frames on a stream that posts."""
    block = (
        b"\x83\x87\x41\x01a"
        + b"\x04"
        + _text(_CONFIGMAPS.encode())
        + _literal(b"authorization", f"Bearer {NARROW}".encode())
        + _literal(b"content-type", b"application/json")
    )
    return lambda size: header_frames(1, block, end_stream=False) + one * (size // len(one)) + frame(DATA, 1, 1)


def _of_user(path: str, *, method: bytes = b"\x82") -> bytes:
    """The block of a request of a user: it takes a seat of its priority level."""
    token = _literal(b"authorization", f"Bearer {NARROW}".encode())
    return method + b"\x87\x41\x01a\x04" + _text(path.encode()) + token + _literal(b"content-type", b"application/json")


def _gone(stream: int) -> bytes:
    return frame(RST_STREAM, 0, stream, b"\0\0\0\x08")


def _flows(size: int) -> bytes:
    """Lists of as many namespaces, each a flow of its own, that are given up as soon as they are asked for."""
    parts: list[bytes] = []
    stream = 1
    while sum(map(len, parts[-1:])) * len(parts) < size:
        block = _of_user(f"/api/v1/namespaces/n{stream}/configmaps")
        parts.append(header_frames(stream, block) + _gone(stream))
        stream += 2
    return b"".join(parts)


_HTTP2: Final[dict[str, Callable[[int], bytes]]] = {
    "referenced-field": _referenced,
    "block-of-indexes": _block(b"\x82"),
    "block-of-empty-fields": _block(_literal(b"a", b"")),
    "block-of-empty-names": _block(_literal(b"", b"")),
    "block-of-table-sizes": lambda size: header_frames(1, b"\x20" * size + _GET_LIVEZ),
    "block-of-insertions": _block(_literal(b"a", b"", indexed=True)),
    "block-of-cookies": _block(_literal(b"cookie", b"a=b")),
    "block-of-huffman": _block(b"\0\x01a\xff\x80\x01" + b"\x07" * 255),
    "long-integer": _block(b"\xff" + b"\x80" * 1000 + b"\0"),
    "continuations-of-none": lambda size: (
        frame(HEADERS, 1, 1, _GET_LIVEZ) + frame(CONTINUATION, 0, 1) * (size // 9) + frame(CONTINUATION, 4, 1)
    ),
    "continuations-of-one": lambda size: (
        frame(HEADERS, 1, 1, _GET_LIVEZ) + frame(CONTINUATION, 0, 1, b"\x87") * (size // 10) + frame(CONTINUATION, 4, 1)
    ),
    "streams": _streams(_GET_LIVEZ),
    "streams-reset": _streams(_GET_LIVEZ, more=lambda stream: frame(RST_STREAM, 0, stream, b"\0\0\0\x08")),
    "streams-of-lists": _streams(
        b"\x82\x87\x41\x01a\x04" + _text(_CONFIGMAPS.encode()) + _literal(b"authorization", f"Bearer {NARROW}".encode())
    ),
    "streams-of-lists-reset": _streams(_of_user(_CONFIGMAPS), more=_gone),
    "streams-of-watches-reset": _streams(_of_user(f"{_CONFIGMAPS}?watch=1"), more=_gone),
    "streams-of-posts-reset": _streams(
        _of_user(f"{_CONFIGMAPS}?dryRun=All", method=b"\x83"),
        more=lambda stream: frame(DATA, 0, stream, b"{") + _gone(stream),
    ),
    "streams-of-flows-reset": _flows,
    "streams-malformed": _streams(b"\x82\x82"),
    "pings": _frames(PING, 0, 0, b"hostile!"),
    "settings": _frames(SETTINGS, 0, 0, b""),
    "settings-many": _frames(SETTINGS, 0, 0, b"\0\x04\0\0\xff\xff" * 2000),
    "settings-table-size": _frames(SETTINGS, 0, 0, b"\0\x01\0\0\0\0\0\x01\0\0\x10\0"),
    "windows": _frames(WINDOW_UPDATE, 0, 0, b"\0\0\0\x01"),
    "priorities": _frames(PRIORITY, 0, 1, b"\0\0\0\0\x10"),
    "unknown-frames": _frames(0x42, 0, 0, b""),
    "resets": _frames(RST_STREAM, 0, 1, b"\0\0\0\x08"),
    "data-of-none": _body(frame(DATA, 0, 1)),
    "data-of-one": _body(frame(DATA, 0, 1, b" ")),
    "data-of-padding": _body(frame(DATA, 8, 1, b"\xff" + b"\0" * 255)),
}


# Answers that nobody reads

_STREAMS: Final = 100
"""Streams that a connection may have open."""


def _anonymous(path: str) -> bytes:
    return b"\x82\x87\x41\x01a\x04" + _text(path.encode())


def _each(blocks: Callable[[int], bytes]) -> bytes:
    """So many streams, with the block that their number has."""
    return b"".join(header_frames(2 * number + 1, blocks(number)) for number in range(_STREAMS))


_ONE_SIZE: Final = (_STREAMS,)


def _unread_answers(path: str, _: int) -> Unread:
    return Unread(_each(lambda _: _anonymous(path)), connections=3)


def _unread() -> Iterator[Case]:
    """Something is kept of each answer that is not taken: others must not miss it."""
    for name, path in {"refusals": "/api/v1/secrets", "refused-watches": "/api/v1/secrets?watch=1"}.items():
        yield _left(name, partial(_unread_answers, path), _ONE_SIZE)
    yield _left("long-refusals", lambda size: Unread(_each(lambda _: _anonymous("/" + "a" * (size // _STREAMS)))))
    yield _left("refusals-http1", lambda size: Unread(_head("/" + "a" * size, token=""), "http/1.1", connections=60))
    yield Case("floods/unread/full-level", _full_level, "full-level", 900_000, crowd=True, takes_seats=True)


def _left(name: str, write: Callable[[int], Unread], sizes: tuple[int, ...] = ()) -> Case:
    return Case(f"floods/unread/{name}", lambda size, _: write(size), name, 900_000, sizes=sizes)


def _full_level(size: int, _: Target) -> Unread:
    """Lists that nobody reads fill a level, and the paths of those that wait for it name what is not there."""

    def block(number: int) -> bytes:
        if number < 60:
            return _of_user(f"/api/v1/namespaces/{CROWDED}/configmaps")
        return _of_user(f"/apis/{number}.example/v1/{'n' * (size // _STREAMS)}{number}?timeout=1s")

    return Unread(_each(block), connections=8)
