"""One HTTP/1.1 request (RFC 9112) to another server, its answer read as it comes; parsing is httptools'.

A connection carries one request. The head of an answer is bounded, its body is never held: who reads it sets the pace.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Final

import httptools

from steersman.net.http2_request import text_of
from steersman.net.message import BodyAborted, Upgraded

MAX_HEAD_BYTES: Final = 1 << 20
MAX_FIELDS: Final = 1000
_BODILESS: Final = frozenset({204, 304})


class BadAnswer(Exception):
    """The other server does not speak HTTP as it should, or has hung up; the text is Go's."""


class Answer:
    """An answer whose body is to be read, once, with `async for`; `close()` in any case.

    `headers` are as they came, with lower-case names. Raises BodyAborted if the body is cut off.
    """

    def __init__(self, connection: Upgraded, sending: asyncio.Task[None] | None, *, head_only: bool) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.leftover = b""
        """What came after a 101: the first bytes of the other protocol."""
        self._connection = connection
        self._sending = sending
        self._head_only = head_only
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self._head_bytes = 0
        self._complete = False
        self._head_done = False
        self._interim = False
        self._ends_with_connection = False

    def header(self, name: str) -> str:
        """The first value of a field, or ""."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def length(self) -> int | None:
        """What the answer says of its body's length."""
        text = self.header("content-length")
        return int(text) if text.isdecimal() and not self.header("transfer-encoding") else None

    async def read_head(self) -> None:
        """Reads until the head is complete; interim answers (1xx) are passed over. Raises BadAnswer."""
        while not self._head_done:
            data = await self._connection.read()
            if not data:
                raise BadAnswer("EOF" if not self._head_bytes else "unexpected EOF")
            self._head_bytes += len(data)
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                self.leftover = data[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                raise BadAnswer(f"malformed HTTP response: {error}") from None
            if (not self._head_done and self._head_bytes > MAX_HEAD_BYTES) or len(self.headers) > MAX_FIELDS:
                raise BadAnswer(f"server response headers exceeded {MAX_HEAD_BYTES} bytes; aborted")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they come. Raises BodyAborted."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self._complete:
                return
            data = await self._connection.read()
            if not data:
                if self._ends_with_connection:
                    return
                raise BodyAborted("the body ended too early")
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                if not self._complete:
                    raise BodyAborted("the body is malformed") from None

    async def read(self, limit: int) -> bytes:
        """The first `limit` bytes of the body. Raises BodyAborted."""
        taken = bytearray()
        async for piece in self:
            taken += piece
            if len(taken) >= limit:
                break
        return bytes(taken[:limit])

    def cut_off(self) -> None:
        """Closes the connection: who reads the body is told that it ended too early."""
        self._complete = self._ends_with_connection = False
        self._connection.close()

    async def close(self) -> None:
        """Closes the connection, and ends what is still being sent."""
        self._connection.close()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    # What the parser calls

    def on_message_begin(self) -> None:
        if not self._head_done:
            self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_done and len(self.headers) <= MAX_FIELDS:
            self.headers.append((text_of(name).lower(), text_of(value)))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200 and status != 101
        if self._interim:
            return
        self.status = status
        self._head_done = True
        self._complete = self._head_only or status == 101 or status in _BODILESS
        self._ends_with_connection = not (self.header("content-length") or self.header("transfer-encoding"))

    def on_body(self, data: bytes) -> None:
        if not self._complete:
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        if not self._interim:
            self._complete = True


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """A request's head. `target` is percent-encoded; raises ValueError for what cannot stand in a head."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ValueError("a line break in a request's head")
    return text.encode() + b"\r\n\r\n"


async def send(
    connection: Upgraded,
    method: str,
    target: str,
    headers: Iterable[tuple[str, str]],
    body: AsyncIterator[bytes] | None = None,
    *,
    chunked: bool = False,
) -> Answer:
    """Sends a request and reads the head of its answer; the body is sent meanwhile. Raises BadAnswer.

    The fields that frame the body (content-length or transfer-encoding) are among `headers` already; with `chunked`
    its pieces are sent as chunks.
    """
    sending: asyncio.Task[None] | None = None
    try:
        await connection.write(request_head(method, target, headers))
    except ConnectionResetError:
        raise BadAnswer("write: broken pipe") from None
    if body is not None:
        sending = asyncio.create_task(_send_body(connection, body, chunked=chunked))
    answer = Answer(connection, sending, head_only=method == "HEAD")
    try:
        await answer.read_head()
    except BaseException:
        await answer.close()
        raise
    return answer


async def _send_body(connection: Upgraded, body: AsyncIterator[bytes], *, chunked: bool) -> None:
    try:
        async for piece in body:
            if piece:
                await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            await connection.write(b"0\r\n\r\n")
    except BodyAborted:
        connection.close()  # the other side must not take what has come for the whole
    except ConnectionResetError:
        return  # the answer, if there was one, tells more
