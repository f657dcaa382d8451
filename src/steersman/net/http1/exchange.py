"""One HTTP/1.1 request and its outgoing response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, cast

from steersman.net import outgoing
from steersman.net.body import EmptyBody, IncomingBody
from steersman.net.connection import is_pushed, notify_closed
from steersman.net.message import Request, Response, Stream, Upgraded
from steersman.net.outgoing import LITTLE, MANY_PIECES, OutgoingAnswer
from steersman.net.upgrade import UpgradedConnection
from steersman.work.bounded_cache import BoundedCache

PHRASES: Final = {
    100: "Continue",
    101: "Switching Protocols",
    102: "Processing",
    103: "Early Hints",
    200: "OK",
    201: "Created",
    202: "Accepted",
    203: "Non-Authoritative Information",
    204: "No Content",
    205: "Reset Content",
    206: "Partial Content",
    207: "Multi-Status",
    208: "Already Reported",
    226: "IM Used",
    300: "Multiple Choices",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    305: "Use Proxy",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Request Entity Too Large",
    414: "Request URI Too Long",
    415: "Unsupported Media Type",
    416: "Requested Range Not Satisfiable",
    417: "Expectation Failed",
    418: "I'm a teapot",
    421: "Misdirected Request",
    422: "Unprocessable Entity",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    506: "Variant Also Negotiates",
    507: "Insufficient Storage",
    508: "Loop Detected",
    510: "Not Extended",
    511: "Network Authentication Required",
}
"""Reason phrases of Go's http.StatusText."""
STATUS_LINES: Final = {
    code: f"HTTP/1.1 {code} {PHRASES.get(code, f'status code {code}')}\r\n".encode() for code in range(100, 1000)
}
_LONGEST_KEPT: Final = 64
"""Characters of a field name whose form is remembered."""
_OLD: Final = slice(len(b"HTTP/1.1"), None)


def field(name: str, value: str) -> bytes:
    """Return a header line; the name is capitalised as in Go (Content-Type)."""
    return f"{_shown_names[name] or _shown(name)}: {value}\r\n".encode()


_shown_names: Final[BoundedCache[str, str]] = BoundedCache(256)


def _shown(name: str) -> str:
    shown = "-".join(word.capitalize() for word in name.split("-"))
    if len(name) <= _LONGEST_KEPT:
        _shown_names.keep(name, shown)
    return shown


class Carrier(outgoing.Carrier, Protocol):
    """Connection of an exchange: the methods that the exchange calls."""

    def hold(self, exchange: Http1Exchange) -> None:
        """Hold an answer back until the rest of a chunked body has arrived, is too long, or takes too long."""
        ...

    def finish(self, exchange: Http1Exchange) -> None:
        """Finish the exchange after its whole response has been passed to the transport."""
        ...

    def hand_over(self) -> UpgradedConnection:
        """Hand the connection over for an upgrade, together with the received bytes."""
        ...

    def cut_off(self) -> None:
        """Close the connection without finishing the response; bytes written so far are still sent."""
        ...


class Http1Exchange(OutgoingAnswer):
    """A request, and its response's `BodyWriter`."""

    __slots__ = ("_chunked", "connection", "keep_alive", "old", "upgradable", "waiting_response")

    def __init__(self, connection: Carrier, request: Request, body: IncomingBody | EmptyBody) -> None:
        super().__init__(connection.core.loop, body)
        self.connection = connection
        self.request = request
        self.keep_alive = True
        self.old = False
        """True for HTTP/1.0: no chunks, and connections are kept only on request."""
        self.upgradable = False
        self.waiting_response: Response | None = None
        """A response that waits until it is known whether the connection is kept."""
        self._chunked = False
        self._no_body = request.method == "HEAD"

    # The response

    def respond(self, response: Response) -> None:
        """Queue the head, and the body unless it is an async iterator. Raises ValueError for an invalid status."""
        body, status = response.body, response.status
        if self.closed or self.responded or self.waiting_response is not None:
            if is_pushed(body):
                notify_closed(cast(Stream, body))
            return
        connection = self.connection
        if status == 101:
            self._switch_protocols(response)
            return
        if status < 200 or status > 999 or response.upgrade is not None:
            raise ValueError(f"a response of status {status} cannot be sent like this")
        bodiless = status in (204, 304)
        pieces: Sequence[bytes] | None = None
        size = 0
        if type(body) is bytes:
            size = len(body)
            pieces = (body,)
        elif isinstance(body, (list, tuple)):
            pieces = body
            size = sum(map(len, body))
        is_unread = not self.body.complete
        if is_unread and pieces is not None and not response.close and self._unread_in_chunks():
            self.waiting_response = response
            connection.hold(self)
            return
        fields = connection.core.h1_fields
        line = STATUS_LINES[status] if not self.old else b"HTTP/1.0" + STATUS_LINES[status][_OLD]
        parts = [line, *fields.encode(response.headers), fields.date()]
        self._no_body = self._no_body or bodiless
        if pieces is not None:
            if not bodiless:
                parts.append(b"Content-Length: %d\r\n" % size)
        elif response.length is not None:
            parts.append(b"Content-Length: %d\r\n" % response.length)
        elif self.old:
            self.keep_alive = self.keep_alive and self._no_body
        elif not self._no_body:
            self._chunked = True
            parts.append(b"Transfer-Encoding: chunked\r\n")
        if response.close or connection.core.draining or (is_unread and self._too_much_unread()):
            self.keep_alive = False
        if self.keep_alive:
            if self.old:
                parts.append(b"Connection: keep-alive\r\n")
        elif not self.old:
            parts.append(b"Connection: close\r\n")
        parts.append(b"\r\n")
        self.responded = True
        connection.out.extend(parts)
        connection.schedule()
        self._send_body(pieces, size, cast(Stream, body) if is_pushed(body) else None)

    def _send_body(self, pieces: Sequence[bytes] | None, size: int, pushed: Stream | None) -> None:
        if self._no_body:
            self.ended = True
            if pushed is not None:
                notify_closed(pushed)
            self.connection.finish(self)
        elif pieces is not None:
            self.ended = True
            if size <= LITTLE and not self.connection.blocked:
                self.connection.out.extend(pieces)
                self.connection.finish(self)
            else:
                self.keep(filter(None, pieces), size)
        elif pushed is not None:
            self._sink = pushed
            self.connection.sends_stream()
            pushed.start(self)

    def _too_much_unread(self) -> bool:
        """Return True if the rest of the request's body is too long to be read only for keeping the connection."""
        body = self.body
        limit = self.connection.core.limits.max_discard
        return self.wants_continue or (
            isinstance(body, IncomingBody) and body.expected is not None and body.expected > limit
        )

    def _unread_in_chunks(self) -> bool:
        """Return True if an unknown number of chunks may follow on a connection that would be kept."""
        body = self.body
        return (
            isinstance(body, IncomingBody)
            and body.expected is None
            and not self.wants_continue
            and self.keep_alive
            and not self.connection.core.draining
        )

    def release(self, *, keep: bool) -> None:
        """Send the response that was held back, if the client is still there; `keep` says whether the connection is
        kept.
        """
        response, self.waiting_response = self.waiting_response, None
        if response is not None and not self.closed:
            self.keep_alive = keep
            self.respond(response)

    def _switch_protocols(self, response: Response) -> None:
        if not self.upgradable or response.upgrade is None:
            raise ValueError("101 without an upgrade asked for by the client")
        connection = self.connection
        fields = connection.core.h1_fields
        connection.out.extend((STATUS_LINES[101], *fields.encode(response.headers), b"\r\n"))
        connection.flush()
        self.responded = True

    async def upgrade(self, take_over: Callable[[Upgraded], Awaitable[None]]) -> None:
        """Run the upgraded protocol, and close the connection afterwards."""
        upgraded = self.connection.hand_over()
        if not self.responded:
            # the client had gone before; the upgraded protocol sees a lost connection, as it would later
            upgraded.lost()
        try:
            await take_over(upgraded)
        finally:
            self.ended = self.closed = True
            upgraded.close()

    def send_continue(self) -> None:
        """Send 100 Continue, as the handler waits for a body that the client holds back."""
        if self.wants_continue and not self.responded and not self.closed:
            self.wants_continue = False
            self.connection.out.append(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.connection.schedule()

    # BodyWriter

    def write(self, data: bytes) -> None:
        """Queue a piece of the body."""
        size = len(data)
        if self.ended or self.closed or not size:
            return
        connection = self.connection
        if size > LITTLE or self.pending or connection.blocked:
            if self._chunked:
                self._hold(b"%x\r\n" % size, data, b"\r\n")
            else:
                self._hold(data)
            return
        out = connection.out
        if self._chunked:
            out += (b"%x\r\n" % size, data, b"\r\n")
        else:
            out.append(data)
        if not connection.scheduled:
            connection.schedule()
        elif len(out) > MANY_PIECES:
            connection.flush()

    def end(self) -> None:
        """End the body."""
        if self.ended or self.closed:
            return
        self.ended = True
        last = b"0\r\n\r\n" if self._chunked else b""
        if last and (self.pending or self.connection.blocked):
            self._hold(last)
        if self.pending:
            return  # flush() finishes the exchange
        if last:
            self.connection.out.append(last)
            self.connection.schedule()
        self.connection.finish(self)

    def _hold(self, *pieces: bytes) -> None:
        self.keep(pieces, sum(map(len, pieces)))
        self.connection.schedule()

    def abort(self) -> None:
        """Close the connection without a proper end, so that the client sees that the response was cut off."""
        if not self.closed:
            self.connection.cut_off()
