"""Streams of a command between a client and a container, over SPDY or a WebSocket.

Follows k8s.io/cri-streaming `remotecommand`: SPDY with protocols up to v4, WebSockets with protocols up to
v4.channel.k8s.io. The API server translates v5 to SPDY before it reaches this server.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from steersman.net.ascii import lower
from steersman.net.message import Request, Response, Upgraded
from steersman.net.spdy import PROTOCOL, Session, SpdyError, Stream
from steersman.net.websocket.messages import MessageConnection, open_messages
from steersman.net.websocket.streams import handshake, is_websocket_request, requested_protocols
from steersman.nodes.server.kubelet import Query, text

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
_ERROR: Final = 3
_SPDY_PROTOCOLS: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_WITH_SIZES: Final = frozenset({"v4.channel.k8s.io", "v3.channel.k8s.io"})
_BASE64: Final = frozenset({"base64.channel.k8s.io", "v4.base64.channel.k8s.io"})
_WEBSOCKET_PROTOCOLS: Final = frozenset({"channel.k8s.io", "v4.channel.k8s.io", *_BASE64})
MOST_MESSAGE: Final = 4 << 20
"""Bytes of a message over a WebSocket. Several copies of a message exist while it is read, passed on and printed."""
_CREATION_TIMEOUT: Final = 30.0
_MOST_STREAMS: Final = 5


class ClientGone(Exception):
    """The client has closed the streams."""


class StreamOptions(Struct, frozen=True):
    """Requested streams of a command."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @classmethod
    def parse(cls, query: Query) -> StreamOptions:
        """Parse the query of a request. Raises ValueError if no stream is requested."""

        def asked(name: str) -> bool:
            return query.get(name, ("",))[0] == "1"

        tty = asked("tty")
        options = cls(asked("input"), asked("output"), asked("error") and not tty, tty)
        if not (options.stdin or options.stdout or options.stderr):
            raise ValueError("you must specify at least 1 of stdin, stdout, stderr")
        return options


class Finished(Struct, frozen=True):
    """End of a command: its exit code, or (`error`) the reason why it could not be run."""

    exit_code: int = 0
    error: str = ""

    def status(self) -> dict[str, Any]:
        """Return the end as a Status in plain data, for the error stream."""
        if self.error:
            message = f"Internal error occurred: {self.error}"
            details = {"causes": [{"message": self.error}]}
            return {
                "metadata": {},
                "status": "Failure",
                "message": message,
                "reason": "InternalError",
                "details": details,
                "code": 500,
            }
        if self.exit_code:
            message = f"command terminated with non-zero exit code: command terminated with exit code {self.exit_code}"
            causes = [{"reason": "ExitCode", "message": str(self.exit_code)}]
            return {
                "metadata": {},
                "status": "Failure",
                "message": message,
                "reason": "NonZeroExitCode",
                "details": {"causes": causes},
            }
        return {"metadata": {}, "status": "Success"}

    def encoded(self, *, with_status: bool) -> bytes:
        """Return the bytes for the error stream: a Status in JSON, or before v4 the text of a failure."""
        status = self.status()
        return msgspec.json.encode(status) if with_status else status.get("message", "").encode()


class Streams(Protocol):
    """Streams that a command reads and writes."""

    async def read(self) -> bytes:
        """Return the next bytes of standard input; b"" at its end. Raises ClientGone."""
        ...

    async def write(self, stream: int, data: bytes) -> None:
        """Write to standard output or standard error. Raises ClientGone."""
        ...


Run = Callable[[Streams, StreamOptions], Awaitable[Finished]]


def command_streams(request: Request, query: Query, run: Run) -> Response:
    """Return the response that opens the requested streams and calls `run` with them, or an error for a wrong request.

    Raises ValueError if no stream is requested.
    """
    options = StreamOptions.parse(query)
    if is_websocket_request(request.headers):
        return _websocket(request, options, run)
    chosen = negotiated(request, _SPDY_PROTOCOLS)
    if isinstance(chosen, Response):
        return chosen
    return upgraded(chosen, partial(_over_spdy, chosen=chosen, options=options, run=run))


# SPDY


def negotiated(request: Request, known: tuple[str, ...]) -> str | Response:
    """Return the protocol of a SPDY upgrade, the first one of the client's that is in `known`; else the
    error response.
    """
    headers = request.headers
    if lower(PROTOCOL) not in lower(headers.get("upgrade", "")) or "upgrade" not in lower(
        headers.get("connection", "")
    ):
        return text(400, "Upgrade request required")
    offered = [each.strip(" ") for each in headers.joined("x-stream-protocol-version").split(",") if each.strip(" ")]
    if not offered:
        return text(400, "unable to upgrade: header X-Stream-Protocol-Version does not exist in request\n")
    chosen = next((each for each in offered if each in known), "")
    if not chosen:
        refusal = text(
            403,
            f"unable to upgrade: unable to negotiate protocol: client supports [{' '.join(offered)}], "
            f"server accepts [{' '.join(known)}]\n",
        )
        refusal.headers += [("x-accepted-stream-protocol-versions", each) for each in known]
        return refusal
    return chosen


def upgraded(chosen: str, serve: Callable[[Upgraded], Awaitable[None]]) -> Response:
    """Return the response that switches the connection to SPDY."""
    fields = [("connection", "Upgrade"), ("upgrade", PROTOCOL)]
    if chosen:
        fields.append(("x-stream-protocol-version", chosen))
    return Response(101, fields, upgrade=serve)


class _Spdy:
    """Streams of a SPDY session."""

    def __init__(self, streams: dict[str, Stream]) -> None:
        self.streams = streams

    async def read(self) -> bytes:
        stdin = self.streams.get("stdin")
        try:
            return b"" if stdin is None else await stdin.read()
        except SpdyError:
            raise ClientGone from None

    async def write(self, stream: int, data: bytes) -> None:
        output = self.streams.get("stdout" if stream == STDOUT else "stderr")
        try:
            if output is not None:
                await output.write(data)
        except SpdyError:
            raise ClientGone from None


async def _over_spdy(connection: Upgraded, *, chosen: str, options: StreamOptions, run: Run) -> None:
    expected = {"error"} | {name for name in ("stdin", "stdout", "stderr") if getattr(options, name)}
    if options.tty and chosen in _WITH_SIZES:
        expected.add("resize")
    streams: dict[str, Stream] = {}
    complete = asyncio.Event()

    async def accept(stream: Stream) -> bool:
        kind = stream.fields.get("streamtype", "")
        if kind not in ("error", "stdin", "stdout", "stderr", "resize") or len(streams) >= _MOST_STREAMS:
            return False
        streams[kind] = stream
        if kind == "resize":
            stream.ignore()  # nothing depends on the size of the terminal
        if expected <= streams.keys():
            complete.set()
        return True

    session = Session(connection, server=True, accept=accept)
    reading = asyncio.create_task(session.run())
    running = asyncio.create_task(_run_on(complete, streams, options, run, with_status=chosen == "v4.channel.k8s.io"))
    try:
        await asyncio.wait([reading, running], return_when=asyncio.FIRST_COMPLETED)
        if running.done() and not running.cancelled() and running.exception() is None:
            await asyncio.wait([reading], timeout=_CREATION_TIMEOUT)  # the client closes when it has read everything
    finally:
        session.close()
        for task in (reading, running):
            task.cancel()
        results = await asyncio.gather(reading, running, return_exceptions=True)
    _raise_unexpected(results)


async def _run_on(
    complete: asyncio.Event, streams: dict[str, Stream], options: StreamOptions, run: Run, *, with_status: bool
) -> None:
    async with asyncio.timeout(_CREATION_TIMEOUT):
        await complete.wait()
    finished = await run(_Spdy(streams), options)
    if (stdin := streams.get("stdin")) is not None:
        stdin.ignore()
    await streams["error"].write(finished.encoded(with_status=with_status))
    for stream in streams.values():
        await stream.end()


def _raise_unexpected(results: Sequence[BaseException | None]) -> None:
    """Raise an error that is neither the end of a connection nor of a task."""
    for each in results:
        if isinstance(each, Exception) and not isinstance(each, SpdyError | ClientGone | TimeoutError):
            raise each


# WebSockets


class _Channels:
    """Channels of a WebSocket: the first byte (with base64: character) of a message is the number of its channel."""

    def __init__(self, client: MessageConnection, options: StreamOptions, *, encoded: bool) -> None:
        self._client = client
        self._wanted = options
        self._encoded = encoded

    async def read(self) -> bytes:
        while (message := await self._client.receive()) is not None:
            if not message:
                continue
            channel, data = message[0], message[1:]
            if self._encoded:
                try:
                    channel, data = channel - ord("0"), base64.b64decode(data, validate=True)
                except binascii.Error:
                    raise ClientGone from None
            if channel == STDIN and data and self._wanted.stdin:
                return data
        raise ClientGone

    async def write(self, stream: int, data: bytes) -> None:
        if (stream == STDOUT and self._wanted.stdout) or (stream == STDERR and self._wanted.stderr):
            await self.send(stream, data)

    async def send(self, channel: int, data: bytes) -> None:
        """Send data on a channel. Raises ClientGone."""
        try:
            if self._encoded:
                await self._client.send(f"{channel}{base64.b64encode(data).decode()}")
            else:
                await self._client.send(bytes((channel,)) + data)
        except ConnectionResetError:
            raise ClientGone from None


def _websocket(request: Request, options: StreamOptions, run: Run) -> Response:
    offered = requested_protocols(request.headers)
    chosen = next((each for each in offered if each in _WEBSOCKET_PROTOCOLS), "")
    if offered and not chosen:
        return text(403, "")
    response = handshake(request.headers, protocol=chosen)
    if response.status == 101:
        response.upgrade = partial(_over_websocket, chosen=chosen, options=options, run=run)
    return response


async def _over_websocket(connection: Upgraded, *, chosen: str, options: StreamOptions, run: Run) -> None:
    client = await open_messages(connection, MOST_MESSAGE)
    channels = _Channels(client, options, encoded=chosen in _BASE64)
    try:
        for channel, open_ in ((STDOUT, options.stdout), (STDERR, options.stderr), (_ERROR, True)):
            if open_:
                await channels.send(channel, b"")  # so that the client knows that it is connected
        finished = await run(channels, options)
        if said := finished.encoded(with_status=chosen.startswith("v4.")):
            await channels.send(_ERROR, said)
    except ClientGone:
        return  # the command has been stopped as well
    finally:
        await client.close()
