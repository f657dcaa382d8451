"""HTTP/1.1 server connections (RFC 9112): as in Go, each request is answered before the next one is parsed."""

from __future__ import annotations

from functools import partial
from typing import Final, cast

from steersman.net.body import EMPTY_BODY, EmptyBody, IncomingBody
from steersman.net.connection import BATCH, LONGEST_AT_THE_END, Core, Receiver
from steersman.net.http1.body import ChunkReader, KnownLength, MalformedChunks
from steersman.net.http1.exchange import Http1Exchange
from steersman.net.http1.head import END_OF_HEAD, Fault, HeadReader, RequestHead, request_line, too_large
from steersman.net.message import Request, Response
from steersman.net.upgrade import UpgradedConnection

_MAX_HELD: Final = 64 << 10
"""Bytes that may wait while a request is answered; then reading stops."""
_MAX_EMPTY_LINES: Final = 4
"""Bytes of line ends that are skipped after a POST, as some old clients send them."""
_LONGEST_GOODBYE: Final = 0.1
"""Seconds allowed for TLS's close_notify on an idle connection at shutdown."""


class Http1Connection(Receiver):
    """An HTTP/1.1 connection of a client."""

    # with more than 30 attributes an instance dict would make each access slower
    __slots__ = (
        "_after_post",
        "_at",
        "_body",
        "_current",
        "_discarded",
        "_heads",
        "_input",
        "_leaving_since",
        "_line_checked",
        "_paused",
        "_reading",
        "_searched",
        "_served",
        "_upgraded",
        "_waiting",
        "_waiting_since",
        "_working",
    )
    protocol = "http/1.1"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._heads = HeadReader(core.limits.max_header_count)
        self._input: bytes | bytearray = b""
        """Received bytes; those before `_at` have been used."""
        self._at = 0
        self._searched = 0
        """Position up to which there is no end of a head."""
        self._line_checked = False
        self._after_post = False
        self._reading: Http1Exchange | None = None
        """The exchange whose body is being read."""
        self._body: KnownLength | ChunkReader | None = None
        self._current: Http1Exchange | None = None
        """The exchange that is being answered."""
        self._waiting: Http1Exchange | None = None
        """The exchange that is being answered, until its handler is started."""
        self._upgraded: UpgradedConnection | None = None
        self._working = False
        self._paused = False
        self._discarded = 0
        self._leaving_since: float | None = None
        """Time at which the answer was first seen complete but not fully written."""
        self._waiting_since = core.loop.time()
        """Time since which the connection waits for the head of the next request, or its first byte."""
        self._served = False

    # asyncio.Protocol

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.out.clear()
        self._unsent.clear()
        self._forget_input()

    def dropped(self) -> None:
        """Cut off what is in flight, as the client is gone."""
        if self._upgraded is not None:
            self._upgraded.lost()
            self._current = None
        else:
            self._drop("the client has gone")

    def eof_received(self) -> bool:
        """Treat the end of input as the client's departure, as Go does. A taken-over connection may go on."""
        if self._upgraded is not None:
            self._upgraded.eof()
            return not self._peer.tls
        self.process_postponed()
        return False

    def pause_writing(self) -> None:
        """Stop writing: the transport's buffer is full."""
        self.blocked = True
        if self._upgraded is not None:
            self._upgraded.pause()

    def resume_writing(self) -> None:
        """Resume writing: the transport's buffer has drained."""
        self.blocked = False
        if self._upgraded is not None:
            self._upgraded.resume()
            return
        self._resume()
        self.schedule()

    def data_received(self, data: bytes) -> None:
        """Process received bytes, and write the resulting output."""
        if self._upgraded is not None:
            self._upgraded.feed(data)
            return
        if self._deaf:
            return
        if self._at >= len(self._input):
            self._input, self._at, self._searched = data, 0, 0
            if self._current is None and self._reading is None:
                self._begins_head()
        else:
            self._append(data)
        if self.later:
            return
        if self.core.input_queue.is_iteration_over():
            self.later = self._put_off = True
            self.core.postponed.enqueue(self)
            self._throttle()
        else:
            self._run()

    def process_postponed(self) -> None:
        """Process postponed input, unless that has happened already."""
        if self._put_off:
            self.later = self._put_off = False
            if not self._lost and self._upgraded is None and not self._deaf:
                self._run()

    def _append(self, data: bytes) -> None:
        held = self._input
        if type(held) is bytearray:
            del held[: self._at]
        else:
            held = self._input = bytearray(held[self._at :])
        held += data
        self._searched -= self._at
        self._at = 0

    def _begins_head(self) -> None:
        if self._served:
            self._waiting_since = self.core.loop.time()

    # Processing of input

    def go_on(self) -> None:
        """Process the input that was left over."""
        self.later = False
        if not self._lost and self._upgraded is None and (not self._deaf or self._waiting is not None):
            self._run(begun=True)

    def _resume(self) -> None:
        """Schedule processing of the rest of the input for a later time slice, as something no longer blocks it."""
        if not self._working and not self.later and (not self._deaf or self._waiting is not None):
            self.later = True
            self.core.input_queue.enqueue(self)

    def _run(self, *, begun: bool = False) -> None:
        """Process the input step by step, for at most one time slice."""
        queue = self.core.input_queue
        self._working = self.scheduled = True
        while self._step():
            if self._at >= len(self._input) and self._waiting is None:
                break
            if not begun:
                begun = True
                queue.start_slice()
            elif queue.is_slice_over():
                self.later = True
                queue.enqueue(self)
                break
            if len(self.out) > 256:
                self.flush()
                self.scheduled = True
        self._working = False
        self.flush()
        self._throttle()

    def _step(self) -> bool:
        """Read a part of a body, start a handler or read a head; return False if there was nothing to do."""
        if self._deaf or self._closing_since is not None:
            return self._start()
        if self._reading is not None and self._at < len(self._input) and self._read_body():
            return True
        if self._waiting is not None:
            return self._start()
        if self._deaf or self._current is not None or self._reading is not None:
            return False
        return self._at < len(self._input) and self._read_head()

    def _read_head(self) -> bool:
        data, at = self._input, self._at
        if self._after_post:
            if len(data) - at < _MAX_EMPTY_LINES and not bytes(data[at:]).strip(b"\r\n"):
                return False
            start = bytes(data[at : at + _MAX_EMPTY_LINES])
            self._at = at = at + len(start) - len(start.lstrip(b"\r\n"))
            self._after_post = False
        match = END_OF_HEAD.search(data, max(at, self._searched))
        size = (match.end() if match is not None else len(data)) - at
        try:
            if size > self.core.limits.max_header_bytes:
                raise too_large()
            if match is None:
                self._check_first_line(data, at)
                self._searched = max(at, len(data) - 2)
                return False
            head = self._heads.read(bytes(data[at : match.end()]))
        except Fault as fault:
            self._answer_fault(fault)
            return False
        self._at = match.end()
        self._line_checked = False
        self._served = True
        self._after_post = head.method == "POST"
        self._new_exchange(head)
        return True

    def _check_first_line(self, data: bytes | bytearray, at: int) -> None:
        """Refuse a malformed request line before the head is complete. Raises Fault."""
        if not self._line_checked and (end := data.find(b"\n", max(at, self._searched))) >= 0:
            self._line_checked = True
            request_line(bytes(data[at:end]).removesuffix(b"\r"))

    def _new_exchange(self, head: RequestHead) -> None:
        fields = head.fields
        scheme = "https" if self._peer.tls else "http"
        body: IncomingBody | EmptyBody = EMPTY_BODY
        request = Request(
            head.method, head.path, head.query, head.headers, body, self._peer, head.version, scheme, head.host
        )
        exchange = Http1Exchange(self, request, body)
        if fields.length != 0:
            exchange.wants_continue = fields.expects_continue
            request.body = exchange.body = IncomingBody(self._consumed, exchange.send_continue, fields.length)
            self._reading = exchange
            self._body = ChunkReader() if fields.length is None else KnownLength(fields.length)
        exchange.old = head.version == "1.0"
        exchange.keep_alive = fields.keep_alive and head.method != "PRI"
        exchange.upgradable = fields.upgradable
        self._current = self._waiting = exchange
        if fields.expects_other:
            self._answer_at_once(Response(417, close=True))
        elif head.target == "*" and head.method == "OPTIONS":
            self._answer_at_once(Response(200))

    def _answer_at_once(self, response: Response) -> None:
        """Answer a request without its handler."""
        exchange, self._waiting = self._waiting, None
        assert exchange is not None
        exchange.respond(response)

    def _read_body(self) -> bool:
        """Read a part of the body; return False if its buffer is full or more input is needed."""
        exchange, reader = self._reading, self._body
        assert exchange is not None
        assert reader is not None
        body = exchange.body
        assert isinstance(body, IncomingBody)
        if body.buffered >= self.core.limits.stream_window:
            return False
        before = self._at
        try:
            piece, self._at = reader.read(self._input, before)
        except MalformedChunks as error:
            self._break_off(exchange, str(error))
            return self._waiting is not None
        if exchange.closed or exchange.waiting_response is not None:
            self._discarded += self._at - before
            if self._discarded > self.core.limits.max_discard:
                self._close_after(exchange)
                return False
        elif piece:
            body.feed(piece)
        if reader.complete:
            body.finish()
            self._end_of_body()
            if exchange.waiting_response is not None:
                exchange.release(keep=True)
        elif self._at == before:
            return False
        return True

    def _end_of_body(self) -> None:
        self._reading = self._body = None
        self._discarded = 0
        if self._current is None and self._at < len(self._input):
            self._begins_head()

    def _break_off(self, exchange: Http1Exchange, reason: str) -> None:
        """End reading of a malformed body: at most one answer follows, then the connection closes."""
        self._deaf = True
        self._end_of_body()
        exchange.keep_alive = False
        if exchange.closed or exchange.waiting_response is not None:
            self._close_after(exchange)
        else:
            cast(IncomingBody, exchange.body).fail(reason)

    def hold(self, exchange: Http1Exchange) -> None:
        """Hold an answer back until the rest of a chunked body has arrived, is too long, or takes too long.

        As in Go, only then is it known whether the connection is kept, which the answer has to say.
        """
        self._discarded = cast(IncomingBody, exchange.body).discard()
        if self._discarded > self.core.limits.max_discard:
            exchange.release(keep=False)
            return
        self.core.loop.call_later(self.core.limits.linger, partial(exchange.release, keep=False))
        if self._at < len(self._input):
            self._resume()

    def _close_after(self, exchange: Http1Exchange) -> None:
        """Give up reading a body: an answer that was held back is sent with `Connection: close`, and the connection
        closes.
        """
        if exchange.waiting_response is not None:
            exchange.release(keep=False)
        else:
            self._close_soon()

    # Flow control of reading

    def _consumed(self, _size: int) -> None:
        if self._reading is not None and self._at < len(self._input):
            self._resume()

    def _throttle(self) -> None:
        """Pause or resume reading by the amount of unprocessed input."""
        if self._lost or self._upgraded is not None or self._closing_since is not None:
            return
        left = len(self._input) - self._at
        full = left > 0 and (self.later or self._reading is not None or left > _MAX_HELD) and not self._awaits_more()
        if full != self._paused:
            self._paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _awaits_more(self) -> bool:
        """Return True if the unprocessed input is incomplete: a line of a body, a part of a head."""
        if self.later:
            return False
        if self._reading is not None:
            return cast(IncomingBody, self._reading.body).buffered < self.core.limits.stream_window
        return self._current is None

    # Answering

    def _start(self) -> bool:
        """Start the handler of the waiting request, if the client reads its answers; return True if one was started."""
        exchange = self._waiting
        if exchange is None or self.blocked or self._lost or self._closing_since is not None:
            return False
        self._waiting = None
        task = self.core.start(exchange, self.core.ended)
        if task is not None and not exchange.closed:
            exchange.task = task
        return True

    def _answer_fault(self, fault: Fault) -> None:
        self._deaf = True
        self.out.append(
            f"HTTP/1.1 {fault.status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
            f"{fault.text}".encode()
        )
        self._close_soon()

    def finish(self, exchange: Http1Exchange) -> None:
        """Finish the exchange after its whole response has been passed to the transport."""
        if exchange.closed:
            return
        exchange.close(None)
        if self.piece != BATCH:
            self.sends_answers()
        self._leaving_since = None
        if self._current is exchange:
            self._current = None
        self._waiting_since = self.core.loop.time()
        if not exchange.keep_alive:
            self._close_soon()
            return
        if self._at < len(self._input):
            self._resume()
        if self.core.draining:
            self.shut_down()

    def _write_out(self) -> None:
        exchange = self._current
        out = self.out
        if exchange is not None and exchange.pending and not self.blocked:
            exchange.move(out, BATCH)
            exchange.wake_writers()
        if out or self._unsent:
            self._send(out)
        if exchange is not None and exchange.responded and not exchange.closed:
            if exchange.pending or self._unsent:
                if not self.blocked:
                    self.schedule()
            elif exchange.ended:
                self.finish(exchange)

    def hand_over(self) -> UpgradedConnection:
        """Hand the connection over for an upgrade, together with the received bytes."""
        held = bytes(self._input[self._at :])
        self._forget_input()
        self._reading = self._body = None
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._send_rest()
        self._upgraded = UpgradedConnection(self._transport, self.core.loop, self.blocked)
        if held:
            self._upgraded.feed(held)
        if self._lost:
            self._upgraded.lost()
        return self._upgraded

    # The end

    def _drop(self, reason: str) -> None:
        current, self._current, self._waiting = self._current, None, None
        if current is not None:
            current.close(reason)
        if self._reading is not None:
            self._reading.close(reason)
            self._reading = self._body = None

    def _forget_input(self) -> None:
        self._input, self._at = b"", 0

    @property
    def _in_head(self) -> bool:
        """True if a part of a head has arrived."""
        return self._current is None and self._reading is None and self._at < len(self._input)

    def cut_off(self) -> None:
        """Close the connection without finishing the response; bytes written so far are still sent."""
        if not self._lost:
            self.flush()
            self._deaf = True
            self._closing_since = self.core.loop.time()
            self._transport.close()
        self._drop("the response was aborted")

    def send_elsewhere(self) -> None:
        """Do nothing, see Connection: the next answer has `Connection: close`, as the server is draining."""

    def shut_down(self) -> None:
        """Close once the request in flight is answered; without one, at once."""
        if self._upgraded is not None:
            return
        if self._current is None and self._reading is None and not self._in_head:
            self._close_soon()
            self.core.loop.call_later(_LONGEST_GOODBYE, self._leave)

    def _leave(self) -> None:
        """Close without the client's close_notify, which a client with a connection pool may never send."""
        if not self._lost and not self._transport.get_write_buffer_size():
            self._transport.abort()

    def _close_soon(self) -> None:
        """Close once all output is sent; if the client is still sending, after it had time to read."""
        if self._closing_since is not None or self._lost:
            return
        self.flush()
        self._closing_since = self.core.loop.time()
        sending = self._deaf or self._reading is not None or self._in_head
        self._deaf = True
        if self._paused:  # reads the input on its way: closing on unread input would lose the last answer
            self._paused = False
            self._transport.resume_reading()
        self._drop("the connection is closing")
        if sending:
            self.core.loop.call_later(self.core.limits.linger, self._close)
        else:
            self._close()

    def _check_waits(self, now: float) -> None:
        limits = self.core.limits
        if self._current is not None and self._current.ended:
            if self._leaving_since is None:
                self._leaving_since = now
            elif now - self._leaving_since > limits.send_timeout:
                self.abort()
        elif self._upgraded is None and self._current is None:
            in_head = self._in_head or not self._served
            longest = limits.header_timeout if in_head else limits.idle_timeout
            if self.core.draining:
                longest = min(longest, LONGEST_AT_THE_END)
            if now - self._waiting_since > longest:
                self._close_soon()
