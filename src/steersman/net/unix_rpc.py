"""Calls of gRPC over a Unix socket: messages are bytes, in and out; errors read as grpc-go prints them."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import Final

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it would tell of each connection that ends, on stderr

import grpc
import grpc.aio

OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.max_receive_message_length", 4 << 20),
)
_MAX_DETAILS: Final = 1024
"""Characters of what the other side says of an error."""
_LOST: Final = (
    "Broken pipe",
    "Cancelling all calls",
    "Connection reset",
    "End of",
    "Endpoint",
    "GOAWAY",
    "Socket closed",
    "Stream",
    "failed to connect",
    "keepalive",
    "recvmsg",
    "sendmsg",
)
"""How the library begins to tell of a connection that was lost."""
_NAMES: Final = {
    each: "".join(part.capitalize() for part in each.name.split("_")).replace("Cancelled", "Canceled")
    for each in grpc.StatusCode
} | {grpc.StatusCode.OK: "OK"}

Observe = Callable[[str, str, float], None]
"""Told of each call: its method, the code of its end (`OK`, `DeadlineExceeded`), the seconds it took."""


class RPCError(Exception):
    """A call that failed; `code` is the name of its gRPC status in Go, e.g. `Unavailable`."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {details}")
        self.code = code


def unix_target(path: str) -> str:
    """A socket as the library names it; a path that begins with `@` is a name in Linux' abstract namespace."""
    return f"unix-abstract:{path[1:]}" if path.startswith("@") else f"unix:{path}"


class UnixChannel:
    """A connection to the server behind a socket, made when it is needed, and again after it was lost.

    `path` that begins with `@` is a name in Linux' abstract namespace. To be made on the loop.
    """

    def __init__(self, path: str, observe: Observe) -> None:
        self._channel = grpc.aio.insecure_channel(unix_target(path), options=OPTIONS)
        self._observe = observe

    async def call(self, method: str, message: bytes, *, timeout: float) -> bytes:
        """The answer of a method (`/v2.KeyManagementService/Status`), for which a server that is not there yet is
        waited for too, `timeout` seconds at most. Raises RPCError."""
        started = perf_counter()
        code = "OK"
        try:
            call = self._channel.unary_unary(method)
            return bytes(await call(message, timeout=timeout, wait_for_ready=True))
        except grpc.aio.AioRpcError as error:
            code = _NAMES[error.code()]
            raise RPCError(code, _details(error)) from None
        finally:
            self._observe(method, code, perf_counter() - started)

    async def close(self) -> None:
        """Ends the connection, and what is under way on it."""
        await self._channel.close()


def _details(error: grpc.aio.AioRpcError) -> str:
    """What the other side says of an error; for what the library says of its own, Go's words."""
    details = (error.details() or "")[:_MAX_DETAILS]
    if details in ("Deadline Exceeded", "Stream removed (Deadline Exceeded)"):
        return "context deadline exceeded"
    if error.code() is grpc.StatusCode.UNAVAILABLE and details.startswith(_LOST):
        return "error reading from server: EOF"
    return details
