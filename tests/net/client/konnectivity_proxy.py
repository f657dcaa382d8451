"""A gRPC proxy like konnectivity-server, which connects to one server for every requested address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from steersman.net import protobuf_fields as proto
from steersman.net.client.konnectivity import (
    CLOSE_REQUEST,
    CLOSE_RESPONSE,
    DATA,
    DIAL_CLOSE,
    DIAL_REQUEST,
    DIAL_RESPONSE,
    packet,
    read_packet,
)

_ID = 7


class KonnectivityProxy:
    """The proxy. `error` is its answer in place of connecting; `closes` ends each dial at once, `ends` the stream."""

    def __init__(self, port: int, *, error: str = "", closes: bool = False, ends: bool = False) -> None:
        self.port = port
        self.error = error
        self.closes = closes
        self.ends = ends
        self.asked: list[tuple[str, str]] = []
        self.closed = asyncio.Event()

    @asynccontextmanager
    async def serving_at(self, path: Path) -> AsyncIterator[None]:
        server = grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(self._proxy)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("ProxyService", {"Proxy": handler}),))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)

    async def _proxy(self, requests: Any, context: Any) -> AsyncIterator[bytes]:
        request = await anext(requests)
        kind, content = read_packet(request)
        assert kind == DIAL_REQUEST
        number = proto.number_of(content, 3)
        self.asked.append((proto.text_of(content, 1), proto.text_of(content, 2)))
        if self.ends:
            return
        if self.closes:
            yield packet(DIAL_CLOSE, (1, number))
            return
        if self.error:
            yield packet(DIAL_RESPONSE, (1, self.error), (3, number))
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        yield packet(DIAL_RESPONSE, (2, _ID), (3, number))
        outward = asyncio.ensure_future(self._outward(requests, writer))
        try:
            while data := await reader.read(1 << 16):
                yield packet(DATA, (1, _ID), (3, data))
            yield packet(CLOSE_RESPONSE, (2, _ID))
        finally:
            outward.cancel()
            writer.close()

    async def _outward(self, requests: Any, writer: asyncio.StreamWriter) -> None:
        async for each in requests:
            kind, content = read_packet(each)
            if kind == CLOSE_REQUEST:
                assert proto.number_of(content, 1) == _ID
                self.closed.set()
                writer.close()
                return
            assert kind == DATA
            writer.write(proto.bytes_of(content, 3))
            await writer.drain()
