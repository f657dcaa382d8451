"""HTTP/1.1 (RFC 9112) client: one request and its answer, parsed as Go's transport parses it.

A connection carries one request at a time. The head of an answer is bounded; its body is not buffered, so that the
reader sets the pace.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from steersman.net.ascii import lower
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.http1.body import ChunkReader, KnownLength, MalformedChunks
from steersman.net.http1.head import END_OF_HEAD, Fault, MalformedFields, content_length, quoted, read_fields
from steersman.net.message import BodyAborted
from steersman.net.upgrade import UpgradedConnection
from steersman.work.patterns import late_pattern
from steersman.work.yielding import next_slice

MAX_HEAD_BYTES: Final = 1 << 20
MAX_FIELDS: Final = 1000
MAX_INTERIM: Final = 1000
"""Interim answers (1xx) allowed before an answer. Go bounds only their bytes; each costs some microseconds."""
_SHORT: Final = 64 << 10
"""Bytes up to which a body is sent together with the head."""
_STEPS_IN_SLICE: Final = 2
"""Pieces of a body that are read in one time slice; a piece of a chunked body joins at most 256 chunks."""
_SLICES: Final = 4
"""Time slices of all bodies together in one iteration of the event loop."""
_SHOWN: Final = 2048
"""Bytes of a line that an error quotes."""
BROKEN: Final = "net/http: HTTP/1.x transport connection broken: "
"""Prefix of errors of an answer, as Go's transport has it."""
_VERSION: Final = late_pattern(rb"HTTP/[0-9]\.[0-9]")
_BODILESS: Final = frozenset({204, 304})
_NO_TRAILER: Final = frozenset({"transfer-encoding", "trailer", "content-length"})


class UnaskedUpgrade(BadAnswer):
    """A 101 answer to a request without an upgrade; the text is that of Go's ReverseProxy."""

    def __init__(self, protocol: str) -> None:
        if not protocol:
            super().__init__("internal error: 101 switching protocols response with non-writable body")
        elif not all(" " <= each <= "~" for each in protocol):
            super().__init__(f"backend tried to switch to invalid protocol {quoted(protocol.encode())}")
        else:
            super().__init__(f'backend tried to switch protocol {quoted(protocol.encode())} when "" was requested')


class Http1Answer(Answer):
    """An answer on a connection that it has to itself; closing the answer closes the connection too."""

    def __init__(self, connection: UpgradedConnection, sending: asyncio.Task[None] | None, *, head_only: bool) -> None:
        super().__init__()
        self.leftover = b""
        """Bytes after the head of a 101 answer: the first bytes of the other protocol."""
        self._connection = connection
        self._sending = sending
        self._head_only = head_only
        self._input: bytes | bytearray = b""
        self._at = 0
        self._body: KnownLength | ChunkReader | None = None
        """Reader of the body's framing; None for a body that ends with the connection."""
        self._complete = False
        self._cut = False
        self._version = ""
        self._give_back: Callable[[], None] | None = None
        self._is_over = False

    def keep(self, give_back: Callable[[], None]) -> None:
        """Call `give_back` on `close`, instead of closing the connection, if the connection can carry another
        request.
        """
        self._give_back = give_back

    @property
    def leaves_open(self) -> bool:
        """True if the connection can carry another request: both bodies are complete and neither side has asked to
        close.
        """
        closes = any(each.strip(" \t") == "close" for each in lower(self.header("connection")).split(","))
        is_sent = self._sending is None or self._sending.done()
        is_read = self._complete and self._at >= len(self._input)
        return (
            is_sent and is_read and not closes and not self._cut and self._version == "HTTP/1.1" and self.status >= 200
        )

    def protocol(self) -> str:
        """Return the protocol that the answer upgrades to, or ""."""
        if "upgrade" not in {lower(each.strip(" \t")) for each in self.header("connection").split(",")}:
            return ""
        return self.header("upgrade")

    async def read_head(self) -> None:
        """Read the head; interim answers (1xx) are skipped. Raises BadAnswer."""
        left, interim = MAX_HEAD_BYTES, 0
        searched, judged = 0, False
        while True:
            match = END_OF_HEAD.search(self._input, max(searched, self._at))
            if match is None:
                size = len(self._input) - self._at
                if size > left:
                    raise _exceeded(f"{MAX_HEAD_BYTES} bytes")
                judged = judged or self._check_status_line(searched)
                await self._more()  # drops the input that has been used
                searched = max(0, size - 2)
                continue
            searched, judged = 0, False
            raw = bytes(self._input[self._at : match.end()])
            self._at = match.end()
            left -= len(raw)
            del match
            try:
                version = self._read_status_line(raw)
                if left < 0:
                    raise _exceeded(f"{MAX_HEAD_BYTES} bytes")
                if 100 <= self.status < 200 and self.status != 101:
                    interim += 1
                    if interim > MAX_INTERIM:
                        raise BadAnswer(f"{BROKEN}net/http: too many 1xx informational responses")
                    continue
                self._frame_body(version)
            except MalformedFields as error:
                raise BadAnswer(f"{BROKEN}{error}") from None
            return

    def _check_status_line(self, searched: int) -> bool:
        """Check the status line before the head is complete; return True once it has been checked. Raises BadAnswer."""
        end = self._input.find(b"\n", max(searched, self._at))
        if end < 0:
            return False
        try:
            _status_of(bytes(self._input[self._at : end]).removesuffix(b"\r"))
        except MalformedFields as error:
            raise BadAnswer(f"{BROKEN}{error}") from None
        return True

    async def _more(self) -> None:
        """Read more input. Raises BadAnswer at the end of the connection; a fault of the incomplete head takes
        precedence.
        """
        data = await self._connection.read()
        if not data:
            if not self._input:
                raise BadAnswer("EOF")
            try:
                _check_incomplete_head(bytes(self._input[self._at :]))
            except MalformedFields as error:
                raise BadAnswer(f"{BROKEN}{error}") from None
            raise BadAnswer(f"{BROKEN}unexpected EOF")
        self._append(data)

    def _append(self, data: bytes) -> None:
        if self._at >= len(self._input):
            self._input = data
        else:
            if type(self._input) is not bytearray:
                self._input = bytearray(self._input)
            del self._input[: self._at]
            self._input += data
        self._at = 0

    def _read_status_line(self, raw: bytes) -> str:
        """Parse the status line and the fields of a head and return the version. Raises MalformedFields and
        BadAnswer.
        """
        end = raw.index(b"\n")
        code, protocol = _status_of(raw[:end].removesuffix(b"\r"))
        try:
            self.headers = read_fields(raw[end + 1 :], MAX_FIELDS)
        except Fault:
            raise _exceeded(f"{MAX_FIELDS} fields") from None
        self.status = code
        self._version = protocol
        return protocol

    def _frame_body(self, version: str) -> None:
        """Determine the framing of the body. Raises MalformedFields."""
        codings = [value for name, value in self.headers if name == "transfer-encoding"]
        chunked = bool(codings) and version >= "HTTP/1.1"
        if chunked and len(codings) > 1:
            raise MalformedFields(f"too many transfer encodings: {_all_quoted(codings)}")
        if chunked and lower(codings[0]) != "chunked":
            raise MalformedFields(f"unsupported transfer encoding: {quoted(codings[0].encode())}")
        length = self._length()
        if chunked:
            _check_trailer([value for name, value in self.headers if name == "trailer"])
        # Go's transport removes these fields from the answer: the framing is done, and chunks override a length
        if codings:
            gone = ("transfer-encoding", "content-length" if chunked else "")
            self.headers = [field for field in self.headers if field[0] not in gone]
        self.length = None if chunked else length
        if self._head_only or self.status in _BODILESS or self.status == 101:
            self._complete = True
            if self.status == 101:
                self.leftover = bytes(self._input[self._at :])
        elif chunked:
            self._body = ChunkReader()
        elif length is not None:
            self._body = KnownLength(length)
            self._complete = not length

    def _length(self) -> int | None:
        """Return the length from Content-Length; several fields must agree. Raises MalformedFields."""
        lengths = [value.strip(" \t") for name, value in self.headers if name == "content-length"]
        if not lengths:
            return None
        if len(lengths) > 1:
            if any(each != lengths[0] for each in lengths):
                several = _all_quoted(lengths)
                raise MalformedFields(f"http: message cannot contain multiple Content-Length headers; got {several}")
            others = [field for field in self.headers if field[0] != "content-length"]
            self.headers = [*others, ("content-length", lengths[0])]
        try:
            return content_length(lengths[:1])
        except Fault:
            what = "bad" if lengths[0] else "invalid empty"
            raise MalformedFields(f"{what} Content-Length {quoted(lengths[0].encode())}") from None

    def whole(self) -> bytes | None:
        """Return and consume the body if all of it has arrived with the head and its length is known; otherwise
        None.
        """
        length = self.length
        if length is None or self._body is None or self._complete or len(self._input) - self._at < length:
            return None
        piece, self._complete = self._take()
        return piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body as they arrive. Raises BodyAborted."""
        steps = 0
        while not self._complete:
            piece, self._complete = self._take()
            if piece:
                yield piece
                steps += 1
                if not steps % _STEPS_IN_SLICE:
                    await next_slice(_SLICES)  # buffered pieces would otherwise be yielded without a wait
            if piece or self._complete:
                continue
            data = await self._connection.read()
            if not data:
                if self._body is None and not self._cut:
                    return
                raise BodyAborted("unexpected EOF")
            self._append(data)

    def _take(self) -> tuple[bytes, bool]:
        """Return the next piece of the body from the input, and True if the body is complete. Raises BodyAborted."""
        reader, data, at = self._body, self._input, self._at
        if reader is None:
            self._input, self._at = b"", 0
            return bytes(data[at:]), False
        try:
            piece, self._at = reader.read(data, at)
        except MalformedChunks as error:
            raise BodyAborted(str(error)) from None
        return piece, reader.complete

    def cut_off(self) -> None:
        """Close the connection: the reader of the body gets BodyAborted."""
        self._cut = True
        if not self._is_over:
            self._connection.hang_up()

    async def close(self) -> None:
        """Close the connection, or give it back if it can be reused; cancel sending of the request's body."""
        if self._is_over:
            return
        self._is_over = True
        if self._give_back is not None and self.leaves_open:
            self._give_back()
            return
        self._end_connection()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _end_connection(self) -> None:
        if self.status == 101:
            self._connection.close()  # bytes written since the upgrade are still flushed
        else:
            self._connection.hang_up()


def _exceeded(bound: str) -> BadAnswer:
    return BadAnswer(f"{BROKEN}net/http: server response headers exceeded {bound}; aborted")


def _check_incomplete_head(rest: bytes) -> None:
    """Raise MalformedFields if this incomplete head is malformed; its last line is treated as complete."""
    line, ended, fields = rest.partition(b"\n")
    if not line:
        return
    _status_of(line.removesuffix(b"\r"))
    if ended and fields:
        try:
            read_fields(fields.removesuffix(b"\n").removesuffix(b"\r") + b"\r\n\r\n", MAX_FIELDS)
        except Fault:
            raise _exceeded(f"{MAX_FIELDS} fields") from None


def _check_trailer(values: Iterable[str]) -> None:
    """Raise MalformedFields if a trailer announces a field that frames the body."""
    for value in values:
        for each in value.split(","):
            name = lower(each.strip(" \t"))
            if name in _NO_TRAILER:
                canonical = "-".join(part.capitalize() for part in name.split("-"))
                raise MalformedFields(f"bad trailer key {quoted(canonical.encode())}")


def _all_quoted(texts: Iterable[str]) -> str:
    return f"[{' '.join(quoted(text.encode()) for text in texts)}]"


def _status_of(line: bytes) -> tuple[int, str]:
    """Return code and version of a status line. Raises MalformedFields."""
    protocol, space, rest = line.partition(b" ")
    if not space:
        raise MalformedFields(f"malformed HTTP response {quoted(line[:_SHOWN])}")
    code = rest.lstrip(b" ").partition(b" ")[0]
    if len(code) != 3 or not code.isdigit():
        raise MalformedFields(f"malformed HTTP status code {quoted(code[:_SHOWN])}")
    if not _VERSION.fullmatch(protocol):
        raise MalformedFields(f"malformed HTTP version {quoted(protocol[:_SHOWN])}")
    return int(code), protocol.decode("ascii")


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the encoded head of a request. `target` is percent-encoded. Raises ValueError for line breaks and NUL."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ValueError("a line break in a request's head")
    return text.encode() + b"\r\n\r\n"


async def send(
    connection: UpgradedConnection,
    method: str,
    target: str,
    headers: Iterable[tuple[str, str]],
    body: AsyncIterator[bytes] | None = None,
    *,
    chunked: bool = False,
    whole: bytes = b"",
) -> Http1Answer:
    """Send a request, read the head of its answer and return the answer.

    A short `whole` body is sent with the head, any other body concurrently with the reading. `headers` must already
    contain the field that frames the body (content-length or transfer-encoding); with `chunked`, the pieces of `body`
    are sent as chunks. Raises BadAnswer, ValueError, and UnaskedUpgrade for a 101 to a request without an Upgrade
    field; the connection is then closed.
    """
    sending: asyncio.Task[None] | None = None
    headers = list(headers)
    if len(whole) >= _SHORT:
        body, whole = _pieces(whole), b""
    try:
        await connection.write(request_head(method, target, headers) + whole)
    except ConnectionResetError:
        connection.close()
        raise BadAnswer("write: broken pipe") from None
    except BaseException:
        connection.close()
        raise
    if body is not None:
        sending = asyncio.create_task(_send_body(connection, body, chunked=chunked))
    answer = Http1Answer(connection, sending, head_only=method == "HEAD")
    try:
        await answer.read_head()
        if answer.status == 101 and not any(lower(name) == "upgrade" for name, _ in headers):
            raise UnaskedUpgrade(answer.protocol())
    except BaseException:
        await answer.close()
        raise
    return answer


async def _pieces(whole: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(whole), _SHORT):  # TLS encrypts each write at once
        yield whole[at : at + _SHORT]


async def _send_body(connection: UpgradedConnection, body: AsyncIterator[bytes], *, chunked: bool) -> None:
    try:
        async for piece in body:
            if piece:
                await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            await connection.write(b"0\r\n\r\n")
    except BodyAborted:
        connection.close()  # the other side must not take the incomplete body for a complete one
    except ConnectionResetError:
        return  # the answer, if there was one, explains more
