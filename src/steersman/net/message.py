"""Requests and responses, as handlers see them: the same objects for HTTP/1.1, HTTP/2 and the in-process transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct, field


class BodyTooLarge(Exception):
    """The request's body is longer than the reader allows."""


class BodyAborted(Exception):
    """The client went away, or broke the protocol, before its body was complete."""


class Headers(dict[str, str]):
    """Header fields by lower-case name; of a repeated one the first value, as Go's Header.Get has it."""

    __slots__ = ("sent",)

    sent: Sequence[tuple[str, str]]
    """Each field as it came, also those that were taken off since: for `pairs` only."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Headers:
        """Headers from name and value pairs; the names are lower case already."""
        headers = cls()
        headers.sent = sent = tuple(pairs)
        headers.update(sent)
        if len(headers) != len(sent):
            headers.update(reversed(sent))
        return headers

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each field by itself, in order, but for those taken off since the request came: what may be passed on."""
        return [field for field in self.sent if field[0] in self]

    def replace(self, name: str, value: str) -> None:
        """Puts one value in the place of all that were sent under `name`."""
        self[name] = value
        self.sent = (*(field for field in self.sent if field[0] != name), (name, value))

    def get_all(self, name: str) -> list[str]:
        """Every value sent under `name` (lower case), in order."""
        return [value for key, value in self.sent if key == name] if name in self else []

    def joined(self, name: str) -> str:
        """Every value sent under `name` (lower case) as one list, for fields that are lists wherever they are read."""
        return ", ".join(self.get_all(name))


class Peer(Struct, frozen=True):
    """Who is at the other end of a connection. `certificate` is its TLS certificate as DER, if it gave one.

    If TLS has verified that, `authorities` are those that vouch for it, up to one that is trusted; if TLS only asks
    (`net.asked_tls`), they are what the client has sent with it. `reached` is where it has connected to.
    """

    host: str = ""
    port: int = 0
    certificate: bytes | None = None
    tls: bool = False
    authorities: tuple[bytes, ...] = ()
    reached: tuple[str, int] = ("", 0)


class RequestBody(Protocol):
    """The body of a request, read once."""

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises BodyTooLarge over `limit` bytes and BodyAborted if it never completes."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The body in pieces, under back-pressure. Raises BodyAborted."""
        ...


class Request(Struct):
    """One HTTP request. `path` is as sent (still percent-encoded), `query` is what follows the question mark.

    The Host field is in `host`, not among the headers. The headers are this request's own: a handler may change them.
    """

    method: str
    path: str
    query: str
    headers: Headers
    body: RequestBody
    peer: Peer
    version: str = "1.1"
    """The HTTP version: "1.1" or "2"."""
    scheme: str = "https"
    host: str = ""
    """The Host header or :authority."""
    when_over: Callable[[], None] | None = None
    """What a handler sets as it returns: called once, when all of its answer has left or nobody wants it any more."""


class BodyWriter(Protocol):
    """The open body of a streaming response. All of it is synchronous, to be called on the loop."""

    @property
    def buffered(self) -> int:
        """Bytes written that the connection has not taken yet (flow control, a slow reader)."""
        ...

    def write(self, data: bytes) -> None:
        """Queues `data`; pieces written in one turn of the loop leave together. Does nothing after the end."""
        ...

    def end(self) -> None:
        """Ends the body properly."""
        ...

    def abort(self) -> None:
        """Ends the response so that the client sees it was cut off (RST_STREAM, or the connection closed)."""
        ...

    async def drain(self) -> None:
        """Waits until little is buffered. Raises BodyAborted if the client has gone."""
        ...


class Stream(Protocol):
    """A response body that is pushed, not pulled: a watch among a thousand others costs no task of its own."""

    def start(self, writer: BodyWriter) -> None:
        """Called once, when the headers have been queued; not at all if no body is sent (HEAD, the client gone)."""
        ...

    def closed(self) -> None:
        """Called once when the response is over for whatever reason: ended, aborted, or the client has gone."""
        ...


class Upgraded(Protocol):
    """A connection taken over after a 101 response: raw bytes both ways."""

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends `data`, waiting while the peer is slow."""
        ...

    def close(self) -> None: ...


Body = bytes | Sequence[bytes] | AsyncIterator[bytes] | Stream


class Response(Struct):
    """One HTTP response.

    `body` is bytes (its content-length is sent), a list of bytes (sent in order, as one length), an async iterator
    (chunks sent under back-pressure) or a `Stream`. Header names are lower case; content-length, transfer-encoding
    and date are the transport's business. `upgrade` goes with status 101 and takes over the connection (HTTP/1.1 only).
    `close` asks for the connection to be closed after this response (Connection: close, or GOAWAY). `length` is that of
    an async iterator, or of what HEAD does not send, where it is known: who makes the body keeps to it. `after` keeps a
    response back: it is given what sends it, and calls that once. Only one whose body is there as a whole may have it.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: Body = b""
    upgrade: Callable[[Upgraded], Awaitable[None]] | None = None
    close: bool = False
    length: int | None = None
    after: Callable[[Callable[[], None]], None] | None = None


Handler = Callable[[Request], Awaitable[Response]]
"""Answers one request. It runs in a task of its own, which is cancelled when the client goes away.

A server may run the part before the first wait at once, without a task: see `net.eager`.
"""
