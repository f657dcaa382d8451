"""A command's streams over a WebSocket (`v5.channel.k8s.io`), translated to SPDY towards the kubelet.

Follows k8s.io/apiserver `util/proxy` (StreamTranslatorHandler) and client-go's `remotecommand`.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from steersman.endpoints.proxy.location import Location
from steersman.endpoints.request import Request
from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, syntax_error
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import internal
from steersman.machinery.go.strings import to_lower, trim_space
from steersman.net.ascii import is_digits
from steersman.net.client.answer import BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.http1 import Http1Answer, send
from steersman.net.message import BodyAborted, Response, Upgraded
from steersman.net.spdy import PROTOCOL, Session, SpdyError, Stream
from steersman.net.websocket.messages import MessageConnection, open_messages
from steersman.net.websocket.streams import handshake, is_websocket_request, requested_protocols

CHANNEL_PROTOCOL: Final = "v5.channel.k8s.io"
SPDY_PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2
_ERROR: Final = 3
_RESIZE: Final = 4
_CLOSE: Final = 255
_STREAM_TIMEOUT: Final = 30.0
_PING_PERIOD: Final = 5.0
_IDLE_TIMEOUT: Final = 4 * 3600.0
_MAX_ERROR_BYTES: Final = 1 << 20
_MAX_SIZE_BYTES: Final = 4096
_MAX_CODE_DIGITS: Final = 20
_WITH_STATUS: Final = frozenset({"v5.channel.k8s.io", "v4.channel.k8s.io"})
_SUCCESS: Final = {"metadata": {}, "status": "Success"}


class Streams(Struct, frozen=True):
    """The streams of a command that a client asks for."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


class _Size(msgspec.Struct):
    """The size of a terminal, with the member names of its JSON."""

    Width: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)] | None = None
    Height: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)] | None = None


class _Refusal(msgspec.Struct):
    """A kubelet's answer that refuses the upgrade."""

    message: Any = None
    error: Any = None


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str | None = None


class _Details(msgspec.Struct):
    causes: list[_Cause | None] | None = None


class _Status(msgspec.Struct):
    """The final message on the error stream."""

    status: str | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_SIZE: Final = msgspec.json.Decoder(_Size)
_REFUSAL: Final = msgspec.json.Decoder(_Refusal)
_STATUS: Final = msgspec.json.Decoder(_Status)
T = TypeVar("T")


def _decoded(decoder: msgspec.json.Decoder[T], data: bytes) -> T | str:
    """Return decoded JSON of a kubelet or a client; for malformed JSON, an error text."""
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        return syntax_error(data) or "json: cannot unmarshal what is of another type"
    except RecursionError:
        return MAX_DEPTH_TEXT
    except UnicodeDecodeError:
        return "invalid UTF-8"


class Writable(Protocol):
    """A stream for writing."""

    async def write(self, data: bytes) -> None:
        """Write data. Raises SpdyError."""
        ...


class Readable(Protocol):
    """Body of an answer."""

    async def read(self, limit: int) -> bytes:
        """Return the body, or its first `limit` bytes. Raises BodyAborted."""
        ...


class Failed(Exception):
    """The command's streams could not be opened, or broke; the text is upstream's."""


class NonZeroExit(Exception):
    """The command has ended with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"command terminated with exit code {code}")
        self.code = code


def is_translated(request: Request) -> bool:
    """Return True if the client offers the WebSocket protocol that is translated; others are passed on to the
    kubelet.
    """
    headers = request.headers
    if request.http.version == "2" or not is_websocket_request(headers):
        return False
    return CHANNEL_PROTOCOL in requested_protocols(headers)


def translate(request: Request, location: Location, streams: Streams) -> Response:
    """Return the answer that upgrades to a WebSocket with the command's streams; the kubelet is contacted
    afterwards.
    """
    response = handshake(request.headers, protocol=CHANNEL_PROTOCOL)
    if response.status == 101:

        async def take_over(connection: Upgraded) -> None:
            await _Translation(await open_messages(connection), location, streams).run()

        response.upgrade = take_over
    return response


class _Translation:
    """One command: its WebSocket to the client and its SPDY session to the kubelet."""

    def __init__(self, client: MessageConnection, location: Location, streams: Streams) -> None:
        self._client = client
        self._location = location
        self._streams = streams
        self._moved = 0.0

    async def run(self) -> None:
        """Run until the command has ended or one side is gone."""
        try:
            await self._send(_STDOUT if self._streams.stdout else _STDERR if self._streams.stderr else _ERROR, b"")
            try:
                await self._stream()
                status: dict[str, Any] = _SUCCESS
            except NonZeroExit as error:
                status = _exit_status(error)
            except Failed as error:
                status = internal(str(error)).status()
                del status["kind"], status["apiVersion"]
            await self._send(_ERROR, encode_in_order(status))
        except ConnectionResetError:
            pass  # the client is gone, or no data was transferred for hours
        finally:
            await self._client.close()

    async def _send(self, channel: int, data: bytes) -> None:
        await self._client.send(bytes((channel,)) + data)
        self._moved = asyncio.get_running_loop().time()

    async def _stream(self) -> None:
        """Run the command. Raises Failed, NonZeroExit, and ConnectionResetError when the client is gone."""
        connection, answer = await self._connect()
        session = Session(connection, first=answer.leftover)
        running = asyncio.create_task(session.run())
        try:
            await self._run_command(session, answer.header("x-stream-protocol-version") or "channel.k8s.io")
        except SpdyError as error:
            raise Failed(str(error)) from None
        finally:
            session.close()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _connect(self) -> tuple[Upgraded, Http1Answer]:
        headers = [("Host", self._location.authority), ("User-Agent", "steersman"), ("Content-Length", "0")]
        headers += [("X-Stream-Protocol-Version", each) for each in SPDY_PROTOCOLS]
        headers += [("Connection", "Upgrade"), ("Upgrade", PROTOCOL)]
        try:
            connection = await self._location.dial()
            answer = await send(connection, "POST", self._location.target, headers)
        except (DialError, BadAnswer, ValueError) as error:
            raise Failed(f'error sending request: Post "{self._location}": {error}') from None
        if answer.status == 101 and to_lower(PROTOCOL) in to_lower(answer.header("upgrade")):
            return connection, answer
        try:
            if 300 <= answer.status < 400 and answer.header("location"):
                target = answer.header("location")
                raise Failed(f'error sending request: Post "{target}": redirect not allowed')
            raise Failed(f"unable to upgrade connection: {await refusal_text(answer)}")
        finally:
            await answer.close()

    async def _run_command(self, session: Session, protocol: str) -> None:
        wanted = self._streams
        errors = await _open(session, "error")
        stdin = await _open(session, "stdin") if wanted.stdin else None
        stdout = await _open(session, "stdout") if wanted.stdout else None
        stderr = await _open(session, "stderr") if wanted.stderr and not wanted.tty else None
        resize = await _open(session, "resize") if wanted.tty and protocol not in SPDY_PROTOCOLS[3:] else None
        if stdin is not None:
            stdin.ignore()
        errors_read = asyncio.create_task(errors.read_all(_MAX_ERROR_BYTES))
        awaited = [errors_read]
        if stdout is not None:
            awaited.append(asyncio.create_task(self._copy_output(stdout, _STDOUT)))
        if stderr is not None:
            awaited.append(asyncio.create_task(self._copy_output(stderr, _STDERR)))
        others = [asyncio.create_task(self._copy_input(stdin, resize)), asyncio.create_task(self._keep_alive(session))]
        tasks = {*awaited, *others}
        try:
            while not all(task.done() for task in awaited):
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in (*awaited, *others):
                task.cancel()
            await asyncio.gather(*awaited, *others, return_exceptions=True)
        if message := errors_read.result():
            raise_for_status(message, protocol)

    async def _copy_output(self, stream: Stream, channel: int) -> bytes:
        while data := await stream.read():
            await self._send(channel, data)
        return b""

    async def _keep_alive(self, session: Session) -> bytes:
        """Ping the kubelet periodically. Raises ConnectionResetError after a long time without data on the
        WebSocket.
        """
        while True:
            await asyncio.sleep(_PING_PERIOD)
            await session.ping()
            if session.loop.time() - self._moved > _IDLE_TIMEOUT:
                raise ConnectionResetError("no data was transferred for too long")

    async def _copy_input(self, stdin: Stream | None, resize: Stream | None) -> bytes:
        """Pass the client's messages on. Raises ConnectionResetError when the client is gone."""
        while (message := await self._client.receive()) is not None:
            self._moved = asyncio.get_running_loop().time()
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel == _CLOSE:
                if len(data) != 1 or data[0] > _RESIZE:
                    break
                if data[0] == _STDIN and stdin is not None:
                    await stdin.end()
            elif channel == _STDIN and stdin is not None:
                try:
                    await stdin.write(data)
                except SpdyError:
                    stdin = None  # the command has closed its input
            elif channel == _RESIZE and resize is not None and not await pass_size(resize, data):
                resize = None
        raise ConnectionResetError("the client has closed the WebSocket")


async def _open(session: Session, kind: str) -> Stream:
    return await session.open({"streamtype": kind}, _STREAM_TIMEOUT)


async def pass_size(resize: Writable, data: bytes) -> bool:
    """Pass the size of a terminal on; return False if no more sizes can be passed."""
    size = _decoded(_SIZE, data[:_MAX_SIZE_BYTES])
    if not isinstance(size, _Size):
        return False
    width, height = size.Width or 0, size.Height or 0
    try:
        await resize.write(b'{"Width":%d,"Height":%d}\n' % (width, height))
    except SpdyError:
        return False
    return True


async def refusal_text(answer: Readable) -> str:
    """Return the message of an answer that refuses an upgrade, in the words of client-go's SPDY executor."""
    try:
        text = (await answer.read(_MAX_ERROR_BYTES)).decode(errors="replace")
    except BodyAborted:
        return "unable to read error from server response"
    refusal = _decoded(_REFUSAL, text.encode())
    if isinstance(refusal, _Refusal):
        for message in (refusal.message, refusal.error):
            if isinstance(message, str) and trim_space(message):
                return trim_space(message)
    return trim_space(text) or "empty server response"


def raise_for_status(message: bytes, protocol: str) -> None:
    """Evaluate the final message. Raises NonZeroExit, or Failed for another failure."""
    text = message.decode(errors="replace")
    if protocol not in _WITH_STATUS:
        raise Failed(f"error executing remote command: {text}")
    status = _decoded(_STATUS, message)
    if not isinstance(status, _Status):
        raise Failed(f"error stream protocol error: {status} in {quote(text)}")
    if status.status == "Success":
        return
    if status.status != "Failure":
        raise Failed("error stream protocol error: unknown error")
    if status.reason != "NonZeroExitCode":
        raise Failed(status.message or "")
    if status.details is None:
        raise Failed("error stream protocol error: details must be set")
    for cause in status.details.causes or ():
        if cause is not None and cause.reason == "ExitCode":
            code = cause.message or ""
            if not (is_digits(code) and len(code) <= _MAX_CODE_DIGITS and int(code) < 256):
                raise Failed(f"error stream protocol error: invalid exit code value {quote(code)}")
            raise NonZeroExit(int(code))
    raise Failed("error stream protocol error: no ExitCode cause given")


def _exit_status(error: NonZeroExit) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {error}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(error.code)}]},
    }
