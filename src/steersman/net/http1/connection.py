"""HTTP/1.1 connections (RFC 9112): requests one after the other, as in Go each answered before the next is read."""

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
"""Bytes that may wait while a request is answered; then no more are read."""
_MAX_EMPTY_LINES: Final = 4
"""Bytes of line ends that are passed over after a POST, as some old clients send them."""
_LONGEST_GOODBYE: Final = 0.1
"""Seconds that a connection without a request has for TLS's goodbye when the server ends."""


class Http1Connection(Receiver):
    """One connection."""

    # with more than 30 attributes a dict would make each access slower
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
        """What has come; up to `_at` it has been used."""
        self._at = 0
        self._searched = 0
        """Up to where there is no end of a head."""
        self._line_checked = False
        self._after_post = False
        self._reading: Http1Exchange | None = None
        """The exchange whose body is read."""
        self._body: KnownLength | ChunkReader | None = None
        self._current: Http1Exchange | None = None
        """The exchange being answered."""
        self._waiting: Http1Exchange | None = None
        """The same, before its handler has been started."""
        self._upgraded: UpgradedConnection | None = None
        self._working = False
        self._paused = False
        self._discarded = 0
        self._leaving_since: float | None = None
        """Since when the answer is complete, as far as has been seen, but has not left."""
        self._waiting_since = core.loop.time()
        """Since when there is no request: the head of the next one, or its first byte, is awaited."""
        self._served = False

    # asyncio.Protocol

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.out.clear()
        self._unsent.clear()
        self._forget_input()

    def dropped(self) -> None:
        """Cuts off what is in flight, as nobody is there any more."""
        if self._upgraded is not None:
            self._upgraded.lost()
            self._current = None
        else:
            self._drop("the client has gone")

    def eof_received(self) -> bool:
        """The client will send no more: as in Go, it is taken to have gone. A taken-over connection may go on."""
        if self._upgraded is not None:
            self._upgraded.eof()
            return not self._peer.tls
        self.take_up()
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
        self._resume()
        self.schedule()

    def data_received(self, data: bytes) -> None:
        """Works on what has come, and writes what came of it."""
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
        if self._later:
            return
        if self.core.turns.spent():
            self._later = self._put_off = True
            self.core.put_off.later(self)
            self._throttle()
        else:
            self._run()

    def take_up(self) -> None:
        """Works on what was put off, unless that has been done."""
        if self._put_off:
            self._later = self._put_off = False
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

    # Working on what has come

    def go_on(self) -> None:
        """Works on what was left over."""
        self._later = False
        if not self._lost and self._upgraded is None and (not self._deaf or self._waiting is not None):
            self._run(begun=True)

    def _resume(self) -> None:
        """Has what was left over worked on in a turn to come, as something has made room for it."""
        if not self._working and not self._later and (not self._deaf or self._waiting is not None):
            self._later = True
            self.core.turns.later(self)

    def _run(self, *, begun: bool = False) -> None:
        """Works on what has come step by step, as long as this connection may in this turn of the loop."""
        turns = self.core.turns
        self._working = self.scheduled = True
        while self._step():
            if self._at >= len(self._input) and self._waiting is None:
                break
            if not begun:
                begun = True
                turns.begin()
            elif turns.over():
                self._later = True
                turns.later(self)
                break
            if len(self.out) > 256:
                self.flush()
                self.scheduled = True
        self._working = False
        self.flush()
        self._throttle()

    def _step(self) -> bool:
        """Reads a part of a body, starts a handler or reads a head; whether there was anything to do."""
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
        found = END_OF_HEAD.search(data, max(at, self._searched))
        size = (found.end() if found is not None else len(data)) - at
        try:
            if size > self.core.limits.max_header_bytes:
                raise too_large()
            if found is None:
                self._check_first_line(data, at)
                self._searched = max(at, len(data) - 2)
                return False
            head = self._heads.read(bytes(data[at : found.end()]))
        except Fault as fault:
            self._answer_fault(fault)
            return False
        self._at = found.end()
        self._line_checked = False
        self._served = True
        self._after_post = head.method == "POST"
        self._new_exchange(head)
        return True

    def _check_first_line(self, data: bytes | bytearray, at: int) -> None:
        """Refuses what cannot be a request before its head is complete. Raises Fault."""
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
        """Answers a request that no handler sees."""
        exchange, self._waiting = self._waiting, None
        assert exchange is not None
        exchange.respond(response)

    def _read_body(self) -> bool:
        """Reads a part of the body; whether there was room for it."""
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
        if exchange.closed or exchange.held is not None:
            self._discarded += self._at - before
            if self._discarded > self.core.limits.max_discard:
                self._close_after(exchange)
                return False
        elif piece:
            body.feed(piece)
        if reader.complete:
            body.finish()
            self._end_of_body()
            if exchange.held is not None:
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
        """The body cannot be read on: there is one answer at most, and then the connection closes."""
        self._deaf = True
        self._end_of_body()
        exchange.keep_alive = False
        if exchange.closed or exchange.held is not None:
            self._close_after(exchange)
        else:
            cast(IncomingBody, exchange.body).fail(reason)

    def hold(self, exchange: Http1Exchange) -> None:
        """Holds an answer back until what is left of a body in chunks has come, or too much, or for a moment.

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
        """The rest of a body is not worth reading: an answer that was held back says so, and the connection closes."""
        if exchange.held is not None:
            exchange.release(keep=False)
        else:
            self._close_soon()

    # Flow control of reading

    def _consumed(self, _size: int) -> None:
        if self._reading is not None and self._at < len(self._input):
            self._resume()

    def _throttle(self) -> None:
        """Stops or resumes reading by what waits to be worked on."""
        if self._lost or self._upgraded is not None or self._closing_since is not None:
            return
        left = len(self._input) - self._at
        full = left > 0 and (self._later or self._reading is not None or left > _MAX_HELD) and not self._awaits_more()
        if full != self._paused:
            self._paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _awaits_more(self) -> bool:
        """Whether what is left over is of no use without what follows it: a line of a body, a part of a head."""
        if self._later:
            return False
        if self._reading is not None:
            return cast(IncomingBody, self._reading.body).buffered < self.core.limits.stream_window
        return self._current is None

    # Answering

    def _start(self) -> bool:
        """Starts the handler of the request that waits for it, if the client takes its answer."""
        exchange = self._waiting
        if exchange is None or self.blocked or self._lost or self._closing_since is not None:
            return False
        self._waiting = None
        task = self.core.start(exchange)
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
        """Called when all of a response has been handed over."""
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
        """Gives the connection to what takes it over, with what the client has sent already."""
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
        """Whether a part of a head has come."""
        return self._current is None and self._reading is None and self._at < len(self._input)

    def cut_off(self) -> None:
        """Ends the connection where it is; what has been written still leaves."""
        if not self._lost:
            self.flush()
            self._deaf = True
            self._closing_since = self.core.loop.time()
            self._transport.close()
        self._drop("the response was aborted")

    def send_elsewhere(self) -> None:
        """See Connection: the next answer has `Connection: close`, as the server is draining."""

    def shut_down(self) -> None:
        """Closes once the request in flight is answered; with none, at once."""
        if self._upgraded is not None:
            return
        if self._current is None and self._reading is None and not self._in_head:
            self._close_soon()
            self.core.loop.call_later(_LONGEST_GOODBYE, self._leave)

    def _leave(self) -> None:
        """Closes without the client's close_notify, which one that keeps the connection for later may never send."""
        if not self._lost and not self._transport.get_write_buffer_size():
            self._transport.abort()

    def _close_soon(self) -> None:
        """Closes once what is written has left; if the client is still sending, after it had time to read."""
        if self._closing_since is not None or self._lost:
            return
        self.flush()
        self._closing_since = self.core.loop.time()
        sending = self._deaf or self._reading is not None or self._in_head
        self._deaf = True
        if self._paused:  # what is on its way is read: closing on unread input would lose the last answer
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
