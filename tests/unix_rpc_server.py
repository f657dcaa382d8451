"""gRPC server on a Unix socket, with a few methods, whose failures and delays tests set."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import grpc
import grpc.aio

from steersman.net import protobuf_fields as proto

Method = Callable[[dict[int, list[proto.Value]]], bytes]
"""Function that returns the answer to a request, given by its protobuf fields."""


class UnixRPCServer:
    """gRPC server that is started and stopped on the event loop."""

    def __init__(self, socket: str, service: str, methods: Mapping[str, Method]) -> None:
        self.socket = socket
        self.delay = 0.0
        self.failure: grpc.StatusCode | None = None
        self.calls: list[str] = []
        self._service = service
        self._methods = methods
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self._server = grpc.aio.server()
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self._handler(name, do)) for name, do in self._methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self._service, handlers),))
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def _handler(
        self, name: str, do: Method
    ) -> Callable[[bytes, grpc.aio.ServicerContext[bytes, bytes]], Awaitable[bytes]]:
        async def answer(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            self.calls.append(name)
            await asyncio.sleep(self.delay)
            if self.failure is not None:
                await context.abort(self.failure, "the server was told to fail")
            return do(proto.decode(request))

        return answer
