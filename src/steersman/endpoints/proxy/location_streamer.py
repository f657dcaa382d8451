"""The answer of another server to a GET, streamed as text: logs.

Follows k8s.io/apiserver `registry/generic/rest` (LocationStreamer, GenericHttpResponseChecker), and for WebSockets
k8s.io/streaming `httpstream/wsstream` (Reader).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Final

from steersman.endpoints.filters.reception import panicked
from steersman.endpoints.proxy.location import Location
from steersman.endpoints.proxy.passing import PassedBody
from steersman.endpoints.request import Request
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import (
    StatusError,
    bad_request,
    generic_server_response,
    internal,
    plain_internal,
)
from steersman.machinery.go.urls import url_error
from steersman.machinery.identity.schema import GroupResource
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.message import BodyAborted, Response, Upgraded
from steersman.net.websocket.messages import MessageConnection, open_messages
from steersman.net.websocket.streams import handshake, is_websocket_request, requested_protocols

_MAX_ERROR_BYTES: Final = 50_000
_BASE64: Final = "base64.binary.k8s.io"
_PROTOCOLS: Final = ("binary.k8s.io", _BASE64)
_PIECE: Final = 32 << 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


async def stream_location(request: Request, location: Location, resource: GroupResource, name: str) -> Response:
    """Return the answer of `location` as a stream; over a WebSocket if the client asks for one.

    Raises StatusError, also for an error answer.
    """
    try:
        answer = await location.send("GET", [("Host", location.authority), ("User-Agent", "steersman")])
    except (DialError, BadAnswer, ValueError) as error:
        raise plain_internal(f'Get "{location}": {error}') from None
    if 200 <= answer.status <= 206:
        body = PassedBody(answer)
        if is_websocket_request(request.headers) and request.http.version != "2":
            return await _over_websocket(request, body)
        return Response(200, [("content-type", "text/plain")], body)
    try:
        if 0 < answer.status < 100:
            return panicked(f"invalid WriteHeader code {answer.status}")
        if answer.status in _REDIRECTS and (target := answer.header("location")):
            raise _forbidden_redirect(location, target)
        raise await _failure(answer, resource, name)
    finally:
        await answer.close()


def _forbidden_redirect(location: Location, target: str) -> StatusError:
    if (wrong := url_error(target)) is not None:
        return plain_internal(f'Get "{location}": failed to parse Location header {quote(target)}: {wrong}')
    return plain_internal(f"Get {quote(target)}: redirects forbidden")


async def _failure(answer: Answer, resource: GroupResource, name: str) -> StatusError:
    try:
        text = (await answer.read(_MAX_ERROR_BYTES)).decode(errors="replace")
    except BodyAborted as error:
        return internal(error)
    if answer.status == 500:
        return internal(text)
    if answer.status == 400:
        return bad_request(text)
    return generic_server_response(answer.status, "", resource, name, text)


async def _over_websocket(request: Request, body: PassedBody) -> Response:
    offered = requested_protocols(request.headers)
    chosen = next((each for each in offered if each in _PROTOCOLS), "")
    if offered and not chosen:
        response = Response(403, [("content-type", "text/plain; charset=utf-8")], close=True)
    else:
        response = handshake(request.headers, protocol=chosen)
    if response.status != 101:
        await body.aclose()
        return response

    async def take_over(connection: Upgraded) -> None:
        client = await open_messages(connection)
        ways = [
            asyncio.create_task(_send_pieces(client, body, encoded=chosen == _BASE64)),
            asyncio.create_task(_ignore_messages(client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await body.aclose()
            await client.close()

    response.upgrade = take_over
    return response


async def _send_pieces(client: MessageConnection, body: AsyncIterator[bytes], *, encoded: bool) -> None:
    try:
        await client.send("" if encoded else b"")  # tells the client that it is connected
        async for piece in body:
            for at in range(0, len(piece), _PIECE):
                part = piece[at : at + _PIECE]
                await client.send(base64.b64encode(part).decode() if encoded else part)
    except (BodyAborted, ConnectionResetError):
        return  # one side is gone: the other sees the end of the connection


async def _ignore_messages(client: MessageConnection) -> None:
    while await client.receive_frame() is not None:
        pass
