"""Transport to an API server in this process, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

from steersman.client.transport import Fields, Unreachable
from steersman.net.in_process import ClientResponse, InProcessClient
from steersman.net.message import BodyAborted, Handler


class InProcessTransport:
    """Sends the requests of one bearer token to a request handler on this event loop."""

    def __init__(self, handler: Handler, token: str) -> None:
        self._client = InProcessClient(handler)
        self._authorization = ("authorization", f"Bearer {token}")

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> _Response:
        """Call the server's handler on this event loop, with this transport's credentials. Raises Unreachable if the
        body is cut off.
        """
        try:
            return _Response(await self._client.request(method, target, (*fields, self._authorization), body))
        except BodyAborted as error:
            raise Unreachable(str(error)) from None

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


class _Response:
    """The response of the handler."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "")

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response:
                yield piece
        except BodyAborted as error:
            raise Unreachable(str(error)) from None

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except BodyAborted as error:
            raise Unreachable(str(error)) from None

    async def aclose(self) -> None:
        await self._response.aclose()
