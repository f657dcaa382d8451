"""gRPC calls to a server behind a Unix socket, as grpc-go makes them with `WaitForReady`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from steersman.net.client import grpc
from steersman.net.client.answer import BadAnswer
from steersman.net.client.dial import DialError, dial_unix
from steersman.net.client.grpc import CallError, Code
from steersman.net.client.http2.answer import StreamReset
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.client.http2.health import Health
from steersman.net.http2.frames import ErrorCode, error_name
from steersman.net.upgrade import UpgradedConnection
from steersman.work.backoff import Backoff, Retries
from steersman.work.single_flight import SingleFlight

LARGEST_MESSAGE: Final = 4 << 20
"""Limit of an answer in bytes, as in grpc-go."""
_AUTHORITY: Final = "localhost"
_CONNECT_TIMEOUT: Final = 20.0
_BACKOFF: Final = Backoff(0.2, longest=3.0, factor=1.6, jitter=0.2)
_HEALTH: Final = Health(read_idle=0.0, confirms_resets=False)
"""No health checks: the end of a Unix socket is reported at once, and gRPC servers close connections that send many
PINGs.
"""

_OF_RESETS: Final[dict[int, Code]] = {
    ErrorCode.CANCEL: Code.CANCELED,
    ErrorCode.REFUSED_STREAM: Code.UNAVAILABLE,
    ErrorCode.ENHANCE_YOUR_CALM: Code.RESOURCE_EXHAUSTED,
    ErrorCode.INADEQUATE_SECURITY: Code.PERMISSION_DENIED,
}
"""grpc-go's status codes for streams that the other side has reset, by HTTP/2 error code; others are `Internal`."""
_EXCEEDED: Final = "context deadline exceeded"

Observe = Callable[[str, str, float], None]
"""Callback at the end of each call: method, code (`OK`, `DeadlineExceeded`), seconds."""


def _ignore(_method: str, _code: str, _seconds: float) -> None:
    """Ignore the call."""


class UnixChannel:
    """A connection to the server behind a socket, opened when needed and reopened after a loss.

    A `path` that begins with `@` is a name in Linux' abstract namespace. The constructor needs a running event loop.
    """

    def __init__(self, path: str, observe: Observe = _ignore) -> None:
        self._path = path
        self._observe = observe
        self._connection: Http2Connection | None = None
        self._dialing: SingleFlight[str, Http2Connection] = SingleFlight(outlives_callers=False)
        self.failure: Exception | None = None
        """Error of the last attempt to connect; None after success or before the first attempt."""

    async def call(self, method: str, message: bytes, *, timeout: float) -> bytes:
        """Call a method (`/v2.KeyManagementService/Status`) and return its answer.

        The call waits for a server that is not there yet, at most `timeout` seconds in all. Raises CallError.
        """
        started = perf_counter()
        code = Code.OK
        try:
            async with asyncio.timeout(timeout) as deadline:
                return await self._answer(method, message, deadline)
        except TimeoutError:
            code = Code.DEADLINE_EXCEEDED
            raise CallError(code, self._why_late()) from None
        except CallError as error:
            code = error.code
            raise
        except asyncio.CancelledError:
            code = Code.CANCELED
            raise
        finally:
            self._observe(method, code.text, perf_counter() - started)

    def _why_late(self) -> str:
        """Return grpc-go's text for a call that was not answered in time."""
        if self._connection is not None and not self._connection.is_over:
            return _EXCEEDED
        match self.failure:
            case None:
                return f"received context error while waiting for new LB policy update: {_EXCEEDED}"
            case DialError() as error:
                why = f"transport: Error while dialing: {error}"
            case _:
                why = "error reading server preface: EOF"
        return f'latest balancer error: connection error: desc = "{why}"'

    async def _answer(self, method: str, message: bytes, deadline: asyncio.Timeout) -> bytes:
        retries, ends = Retries(_BACKOFF), deadline.when()
        assert ends is not None
        while True:
            connection = await self.connected()
            block = grpc.head(_AUTHORITY, method, timeout=ends - asyncio.get_running_loop().time())
            try:
                return await grpc.call(connection, block, message, most=LARGEST_MESSAGE)
            except CallError as error:
                if not error.is_unsent:
                    raise _as_go(error) from None
            if connection.has_capacity:
                await retries.pause()

    async def connected(self) -> Http2Connection:
        """Wait for a connection that accepts calls, without a time limit, and return it."""
        while (connection := self._connection) is not None and not (connection.is_over or connection.is_leaving):
            if connection.has_capacity:
                return connection
            await connection.wait_for_capacity()
        return await self._dialing.do("dial", self._dial)

    async def _dial(self) -> Http2Connection:
        retries = Retries(_BACKOFF)
        while True:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT):
                    connection = await self._greeted((await dial_unix(self._path)).upgraded)
            except (DialError, BadAnswer, ConnectionResetError, TimeoutError) as error:
                self.failure = error
                await retries.pause()
            else:
                self._connection, self.failure = connection, None
                return connection

    async def _greeted(self, dialed: UpgradedConnection) -> Http2Connection:
        """Return a connection after the other side's HTTP/2 preface. Raises BadAnswer and ConnectionResetError."""
        connection = Http2Connection(dialed, health=_HEALTH)
        try:
            await connection.greeted()
        except BaseException:
            connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Close the connection; running calls fail."""
        await self._dialing.stop()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _as_go(error: CallError) -> CallError:
    """Convert an error to grpc-go's code and text."""
    if error.code is Code.DEADLINE_EXCEEDED and error.details == "Deadline Exceeded":
        return CallError(error.code, _EXCEEDED)  # text of servers based on gRPC's C core
    match error.lost:
        case None:
            return error
        case StreamReset(code=code):
            details = f"stream terminated by RST_STREAM with error code: {error_name(code)}"
            return CallError(_OF_RESETS.get(code, Code.INTERNAL), details)
        case lost:
            is_end = str(lost).startswith(("unexpected EOF", "http2: server sent GOAWAY", "http2: client connection"))
            return CallError(Code.UNAVAILABLE, "error reading from server: EOF" if is_end else str(lost))
