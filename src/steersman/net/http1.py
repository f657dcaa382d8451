"""HTTP/1.1 connections (RFC 9112): requests one after the other, answered in order; parsing is httptools'."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import lru_cache
from typing import Final, cast

import httptools

from steersman.net.body import EMPTY_BODY, EmptyBody, IncomingBody
from steersman.net.connection import BATCH, Core, Receiver, peer_of
from steersman.net.http1_exchange import STATUS_LINES, Http1Exchange
from steersman.net.http2_request import text_of
from steersman.net.message import Headers, Peer, Request
from steersman.net.upgrade import UpgradedConnection

_MAX_HELD: Final = 64 << 10
_MAX_QUEUED: Final = 64


@lru_cache(maxsize=1024)
def _field_name(raw: bytes) -> str:
    return raw.lower().decode("latin-1")


class _Fault(Exception):
    """A request that cannot be served: the status to answer with before the connection closes, as Go words it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Http1Connection(Receiver):
    """One connection."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._peer = Peer()
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._fields: list[tuple[str, str]] = []
        self._headers = Headers()
        self._head_bytes = 0
        self._in_head = False
        self._reading: Http1Exchange | None = None
        """The exchange whose body the parser is in."""
        self._current: Http1Exchange | None = None
        """The exchange being answered."""
        self._queue: deque[Http1Exchange] = deque()
        self._fault: _Fault | None = None
        self._held: bytes | None = None
        """What came after a request that asks for an upgrade, until that is decided."""
        self._upgraded: UpgradedConnection | None = None
        self._advancing = False
        self._paused = False
        self._discarded = 0
        self._deaf = False
        self._closing_since: float | None = None
        now = core.loop.time()
        self._waiting_since = now
        """Since when there is no request: the head of the next one, or its first byte, is awaited."""
        self._served = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Registers the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water)
        self._peer = peer_of(transport)
        self.core.connections.add(self)
        self.core.counters.open["http/1.1"] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Cuts off what is in flight."""
        self._lost = self._deaf = True
        self.core.remove(self)
        self.core.counters.open["http/1.1"] -= 1
        if self._upgraded is not None:
            self._upgraded.lost()
        else:
            self._drop("the client has gone")
        self.out.clear()

    def eof_received(self) -> bool:
        """The client will send no more: as in Go, it is taken to have gone. A taken-over connection may go on."""
        if self._upgraded is not None:
            self._upgraded.eof()
            return not self._peer.tls
        return False

    def pause_writing(self) -> None:
        """The transport has enough."""
        self.blocked = True
        if self._upgraded is not None:
            self._upgraded.pause()

    def resume_writing(self) -> None:
        """The transport takes more."""
        self.blocked = False
        if self._upgraded is not None:
            self._upgraded.resume()
            return
        self._advance()
        self.schedule()

    def data_received(self, data: bytes) -> None:
        """Parses what has come, starts the next handler, and writes what came of it."""
        if self._upgraded is not None:
            self._upgraded.feed(data)
            return
        if self._deaf:
            return
        if self._held is not None:
            self._held += data
            self._throttle()
            return
        self.scheduled = True
        self._feed(data)
        self._advance()
        self.flush()
        self._throttle()

    # Reading

    def _feed(self, data: bytes) -> None:
        if self._reading is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._held = data[upgrade.args[0] :]
        except httptools.HttpParserError:
            self._fault = self._fault or _Fault(400, "400 Bad Request")
        if self._in_head and self._head_bytes > self.core.limits.max_header_bytes:
            self._fault = self._fault or _Fault(431, "431 Request Header Fields Too Large")
        if self._fault is not None:
            self._deaf = True
            if self._reading is not None and isinstance(self._reading.body, IncomingBody):
                self._reading.body.fail("the body is malformed")

    def on_message_begin(self) -> None:
        """Called by the parser at a request's first byte."""
        if not self._in_head:
            self._in_head = True
            if self._served:
                self._waiting_since = self.core.loop.time()
        self._url = b""
        self._fields = []
        self._headers = Headers()

    def on_url(self, url: bytes) -> None:
        """Called by the parser with a piece of the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser for each header field."""
        if self._reading is not None:
            return  # a trailer
        if len(self._fields) > self.core.limits.max_header_count:
            return  # refused at the end of the head
        key, text = _field_name(name), text_of(value)
        self._fields.append((key, text))
        headers = self._headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        """Called by the parser at the end of a head: makes the exchange, which starts after this piece of input."""
        self._in_head = False
        self._served = True
        if self._fault is not None:
            return
        try:
            exchange = self._new_exchange()
        except _Fault as fault:
            self._fault = fault
            return
        self._reading = exchange
        self._queue.append(exchange)

    def on_body(self, data: bytes) -> None:
        """Called by the parser with a piece of a body."""
        exchange = self._reading
        if exchange is None or self._fault is not None:
            return
        if exchange.done:
            self._discarded += len(data)
            if self._discarded > self.core.limits.max_discard:
                self._close_soon()
            return
        cast(IncomingBody, exchange.body).feed(data)

    def on_message_complete(self) -> None:
        """Called by the parser at the end of a request."""
        self._head_bytes = 0
        exchange, self._reading = self._reading, None
        if exchange is not None and isinstance(exchange.body, IncomingBody):
            exchange.body.finish()
        self._discarded = 0

    def _new_exchange(self) -> Http1Exchange:
        headers, fields = self._headers, self._fields
        limits = self.core.limits
        size = len(self._url) + sum(len(name) + len(value) + 4 for name, value in fields)
        if size > limits.max_header_bytes or len(fields) > limits.max_header_count:
            raise _Fault(431, "431 Request Header Fields Too Large")
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise _Fault(505, "505 HTTP Version Not Supported: unsupported protocol version")
        method = self._parser.get_method().decode("latin-1")
        host = self._take_host(version)
        path, query, host = _split_target(text_of(self._url), method, host)
        expect = headers.get("expect", "").lower()
        if expect and expect != "100-continue":
            raise _Fault(417, "417 Expectation Failed")
        length = headers.get("content-length")
        has_body = "transfer-encoding" in headers or (length is not None and length != "0")
        body: IncomingBody | EmptyBody = EMPTY_BODY
        headers.sent = self._fields
        request = Request(
            method, path, query, headers, body, self._peer, version, "https" if self._peer.tls else "http", host
        )
        exchange = Http1Exchange(self, request, body)
        if has_body:
            expected = None if "transfer-encoding" in headers or length is None else int(length)
            exchange.wants_continue = bool(expect) and version == "1.1"
            request.body = exchange.body = IncomingBody(self._consumed, exchange.send_continue, expected)
        exchange.old = version == "1.0"
        exchange.keep_alive = self._parser.should_keep_alive()
        exchange.upgradable = self._parser.should_upgrade()
        return exchange

    def _take_host(self, version: str) -> str:
        """The Host field, which is no header to the handler."""
        host = self._headers.pop("host", None)
        if host is None:
            if version == "1.1":
                raise _Fault(400, "400 Bad Request: missing required Host header")
            return ""
        before = len(self._fields)
        self._fields = [field for field in self._fields if field[0] != "host"]
        if before - len(self._fields) > 1:
            raise _Fault(400, "400 Bad Request: too many Host headers")
        if any(char in host for char in "/\\@ \t,"):
            raise _Fault(400, "400 Bad Request: malformed Host header")
        return host

    # Flow control of reading

    def _consumed(self, _size: int) -> None:
        if self._paused:
            self._throttle()

    def _throttle(self) -> None:
        """Stops or resumes reading by what is buffered."""
        if self._lost or self._upgraded is not None:
            return
        body = self._reading.body if self._reading is not None else None
        full = (
            len(self._queue) > _MAX_QUEUED
            or (isinstance(body, IncomingBody) and body.buffered >= self.core.limits.stream_window)
            or (self._held is not None and len(self._held) > _MAX_HELD)
        )
        if full != self._paused:
            self._paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # Answering

    def _advance(self) -> None:
        """Starts handlers one after the other, as long as they answer at once and the client takes the answers."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._current is None and self._queue and not self._lost and not self.blocked \
                    and self._closing_since is None:  # fmt: skip
                exchange = self._current = self._queue.popleft()
                task = self.core.start(exchange)
                if task is not None and not exchange.done:
                    exchange.task = task
                self._flush_if_large()
        finally:
            self._advancing = False
        if self._current is None and not self._queue and self._fault is not None:
            self._answer_fault()

    def _flush_if_large(self) -> None:
        if len(self.out) > 256:
            scheduled = self.scheduled
            self.flush()
            self.scheduled = self.scheduled or scheduled

    def _answer_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is None or self._lost or self._closing_since is not None:
            return
        status, text = fault.status, fault.text.encode()
        self.out += (
            STATUS_LINES[status],
            b"Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n",
            text,
        )
        self._close_soon()

    def finish(self, exchange: Http1Exchange) -> None:
        """Called when all of a response has been handed over."""
        if exchange.done:
            return
        exchange.close(None)
        if self._current is exchange:
            self._current = None
        self._waiting_since = self.core.loop.time()
        if not exchange.keep_alive:
            self._close_soon()
            return
        if self._held is not None and not self._queue:
            held, self._held = self._held, None
            self._parser = httptools.HttpRequestParser(self)
            self._head_bytes = 0
            if held:
                self._feed(held)
        self._throttle()
        if not self._advancing:
            self._advance()
        if self.core.draining:
            self.shut_down()

    def _write_out(self) -> None:
        exchange = self._current
        out = self.out
        if exchange is not None and exchange.pending and not self.blocked:
            exchange.take(out, BATCH)
        if out:
            data = b"".join(out)
            out.clear()
            self._transport.write(data)
        if exchange is not None and exchange.responded and not exchange.done:
            if exchange.pending:
                if not self.blocked:
                    self.schedule()
            elif exchange.ended:
                self.finish(exchange)

    def hand_over(self) -> UpgradedConnection:
        """Gives the connection to what takes it over, with what the client has sent already."""
        held, self._held = self._held or b"", None
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._upgraded = UpgradedConnection(self._transport, self.core.loop, self.blocked)
        if held:
            self._upgraded.feed(held)
        if self._lost:
            self._upgraded.lost()
        return self._upgraded

    # The end

    def _drop(self, reason: str) -> None:
        exchanges = [*self._queue]
        self._queue.clear()
        if self._current is not None:
            exchanges.insert(0, self._current)
            self._current = None
        for exchange in exchanges:
            exchange.close(reason)
        if self._reading is not None:
            self._reading.close(reason)

    def cut_off(self) -> None:
        """Ends the connection where it is; what has been written still leaves."""
        if not self._lost:
            self.flush()
            self._deaf = True
            self._transport.close()
        self._drop("the response was aborted")

    def shut_down(self) -> None:
        """Closes once the request in flight is answered; with none, at once."""
        if self._upgraded is not None:
            return
        if self._current is None and not self._queue and self._reading is None and not self._in_head:
            self._close_soon()

    def _close_soon(self) -> None:
        """Closes once what is written has left; if the client is still sending, after it had time to read."""
        if self._closing_since is not None or self._lost:
            return
        self.flush()
        self._closing_since = self.core.loop.time()
        sending = self._deaf or self._reading is not None or self._in_head
        self._deaf = True
        self._drop("the connection is closing")
        if sending:
            self.core.loop.call_later(self.core.limits.linger, self._close)
        else:
            self._close()

    def _close(self) -> None:
        if not self._lost:
            self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        if not self._lost:
            self._transport.abort()

    def check(self, now: float) -> None:
        """Closes the connection if it has been idle, or in the middle of a head, for too long."""
        limits = self.core.limits
        if self._closing_since is not None:
            if now - self._closing_since > limits.linger + limits.tls_shutdown_timeout:
                self.abort()
        elif self._upgraded is None and self._current is None and not self._queue:
            in_head = self._in_head or not self._served
            if now - self._waiting_since > (limits.header_timeout if in_head else limits.idle_timeout):
                self._close_soon()


def _split_target(target: str, method: str, host: str) -> tuple[str, str, str]:
    """Path, query and host of a request target (RFC 9112 section 3.2). Raises _Fault."""
    if target.startswith("/"):
        path, _, query = target.partition("?")
        return path, query, host
    if method == "CONNECT":
        return "", "", target
    if target == "*" and method == "OPTIONS":
        return target, "", host
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise _Fault(400, "400 Bad Request")
    authority, slash, rest = rest.partition("/")
    authority, mark, bare_query = authority.partition("?")
    if not authority:
        raise _Fault(400, "400 Bad Request")
    if mark:
        return "/", bare_query + slash + rest, authority
    path, _, query = f"/{rest}".partition("?")
    return path, query, authority
