"""gzip compression of large answers, in threads, for clients that accept it.

See `machinery.deflate` for the libraries that compress.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from typing import Final

from steersman.endpoints.accept_encoding import accepts_gzip
from steersman.endpoints.request import Request
from steersman.endpoints.streamed import StreamedBody
from steersman.machinery.deflate import Compressor, compressor
from steersman.net.message import Response

COMPRESS_OVER: Final = 128 * 1024
"""Bytes above which an answer is compressed."""
_BATCH = 512 * 1024


async def compressed(request: Request, response: Response, executor: Executor) -> Response:
    """Return the answer, compressed if it is large and the client accepts gzip."""
    body = response.body
    if not accepts_gzip(request.headers):
        return response
    if isinstance(body, bytes):
        is_large = len(body) > COMPRESS_OVER
    elif isinstance(body, list):
        is_large = sum(map(len, body)) > COMPRESS_OVER
    else:
        is_large = isinstance(body, StreamedBody)
    return await compress(response, executor) if is_large else response


async def compress(response: Response, executor: Executor) -> Response:
    """Return the answer with a gzip body; the body must be bytes or a StreamedBody."""
    body = response.body
    loop = asyncio.get_running_loop()
    headers = [*response.headers, ("content-encoding", "gzip"), ("vary", "Accept-Encoding")]
    if isinstance(body, StreamedBody):
        return Response(response.status, headers, StreamedBody(_compressed(_gathered(body), loop, executor)))
    assert isinstance(body, bytes | Sequence)
    pieces = [body] if isinstance(body, bytes) else list(body)
    if sum(map(len, pieces)) <= 8 * _BATCH:
        return Response(response.status, headers, await loop.run_in_executor(executor, _compress_all, pieces))
    return Response(response.status, headers, StreamedBody(_compressed(_batches(pieces), loop, executor)))


def _compress_all(pieces: Sequence[bytes]) -> bytes:
    stream = compressor()
    return b"".join([*map(stream.compress, pieces), stream.flush()])


async def _compressed(
    batches: AsyncGenerator[list[bytes], None], loop: asyncio.AbstractEventLoop, executor: Executor
) -> AsyncGenerator[bytes, None]:
    stream = compressor()
    async with aclosing(batches):
        async for batch in batches:
            yield await loop.run_in_executor(executor, _compress_some, stream, batch)
    yield stream.flush()


async def _batches(pieces: Sequence[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield existing pieces in batches."""
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


async def _gathered(body: StreamedBody) -> AsyncGenerator[list[bytes], None]:
    """Yield the pieces of a streamed body in batches, as they are produced."""
    batch: list[bytes] = []
    size = 0
    async with aclosing(body):
        async for piece in body:
            batch.append(piece)
            size += len(piece)
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
    yield batch


def _compress_some(stream: Compressor, pieces: Sequence[bytes]) -> bytes:
    return b"".join(map(stream.compress, pieces))
