"""Requests and responses as handlers see them: the same types for HTTP/1.1, HTTP/2 and the in-process transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct, field


class BodyTooLarge(Exception):
    """The request's body is longer than the reader allows."""


class BodyAborted(Exception):
    """The client left, or violated the protocol, before its body was complete."""


class Headers(dict[str, str]):
    """Header fields by lower-case name; a repeated field has its first value, as in Go's Header.Get."""

    __slots__ = ("sent",)

    sent: Sequence[tuple[str, str]]
    """All fields as received, including those removed since; use `pairs` instead."""

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> Headers:
        """Return headers from (name, value) pairs with lower-case names."""
        headers = cls()
        headers.sent = sent = tuple(pairs)
        headers.update(sent)
        if len(headers) != len(sent):
            headers.update(reversed(sent))
        return headers

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All (name, value) pairs to pass on: in order, repeated fields included, without fields that a filter removed."""
        return [field for field in self.sent if field[0] in self]

    def replace(self, name: str, value: str) -> None:
        """Replace all values of `name` with one value."""
        self[name] = value
        self.sent = (*(field for field in self.sent if field[0] != name), (name, value))

    def get_all(self, name: str) -> list[str]:
        """Return every value of `name` (lower case), in order."""
        return [value for key, value in self.sent if key == name] if name in self else []

    def joined(self, name: str) -> str:
        """Return all values of `name` (lower case) as one comma-separated list, for fields that are lists."""
        return ", ".join(self.get_all(name))


class Peer(Struct, frozen=True):
    """The other end of a connection. `certificate` is its TLS certificate (DER), if it sent one.

    If TLS has verified the certificate, `authorities` is the chain above it up to a trusted one. If TLS only requests
    certificates (`net.pyopenssl_tls`), `authorities` are the certificates that the client has sent. `reached` is the local
    address to which the client has connected.
    """

    host: str = ""
    port: int = 0
    certificate: bytes | None = None
    tls: bool = False
    authorities: tuple[bytes, ...] = ()
    reached: tuple[str, int] = ("", 0)
    since: float = 0.0
    """Monotonic time of the connection's beginning."""


class RequestBody(Protocol):
    """The body of a request, read once."""

    def whole(self, limit: int) -> bytes | None:
        """Return the whole body if it has arrived in one piece of at most `limit` bytes, otherwise None."""
        ...

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises BodyTooLarge over `limit` bytes and BodyAborted if the body never completes."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces, with backpressure. Raises BodyAborted."""
        ...


class Request(Struct):
    """One HTTP request. `path` is as sent (percent-encoded), `query` is the text after the question mark.

    The Host field is in `host`, not among the headers. The headers belong to this request: a handler may change them.
    """

    method: str
    path: str
    query: str
    headers: Headers
    body: RequestBody
    peer: Peer
    version: str = "1.1"
    """The HTTP version: "1.0", "1.1" or "2"."""
    scheme: str = "https"
    host: str = ""
    """The Host header or :authority."""
    on_request_end: Callable[[], None] | None = None
    """Callback that a handler may set before it returns: called once, when the whole answer is sent or abandoned."""


class BodyWriter(Protocol):
    """The open body of a streaming response. All methods but `drain` are synchronous, for calls on the event loop."""

    @property
    def buffered(self) -> int:
        """Bytes written that the connection has not accepted yet (flow control, a slow reader)."""
        ...

    def write(self, data: bytes) -> None:
        """Queue `data`; pieces written in one iteration of the event loop are sent together. Does nothing after the
        end.
        """
        ...

    def end(self) -> None:
        """End the body properly."""
        ...

    def abort(self) -> None:
        """End the response so that the client sees that it was cut off (RST_STREAM, or a closed connection)."""
        ...

    async def drain(self) -> None:
        """Wait until little is buffered. Raises BodyAborted if the client is gone."""
        ...


class Stream(Protocol):
    """A response body that pushes its data: thousands of watches need no task each."""

    def start(self, writer: BodyWriter) -> None:
        """Begin writing. Called once, after the headers are queued; not called if there is no body (HEAD, client
        gone).
        """
        ...

    def closed(self) -> None:
        """Release resources. Called once at the end of the response: ended, aborted, or client gone."""
        ...


class Upgraded(Protocol):
    """A connection taken over after a 101 response: raw bytes both ways."""

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send `data`, waiting while the peer is slow."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


Body = bytes | Sequence[bytes] | AsyncIterator[bytes] | Stream


class Response(Struct):
    """One HTTP response.

    `body` is bytes (sent with its content-length), a list of bytes (sent in order, with one content-length), an async
    iterator (its pieces are sent with backpressure) or a `Stream`. Header names are lower case; the transport adds
    content-length, transfer-encoding and date. `upgrade` belongs to status 101 and takes over the connection (HTTP/1.1
    only). `close` closes the connection after this response (Connection: close, or GOAWAY). `length` is the known
    length of an async iterator, which must keep to it, or of a body that HEAD omits. `after` defers a response: it is
    called with a function that sends the response, and must call that function once. Only a body of bytes may be
    deferred.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: Body = b""
    upgrade: Callable[[Upgraded], Awaitable[None]] | None = None
    close: bool = False
    length: int | None = None
    after: Callable[[Callable[[], None]], None] | None = None


Handler = Callable[[Request], Awaitable[Response]]
"""Function that answers one request. It runs in a task of its own, which is cancelled when the client goes away.

A server may run the part before the first wait at once, without a task: see `net.eager`.
"""
