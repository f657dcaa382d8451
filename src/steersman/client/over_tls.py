"""Transport to a remote API server, configured by a kubeconfig."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from steersman.client.transport import Fields, Unreachable
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.transport import Transport
from steersman.net.message import BodyAborted
from steersman.webhooks.kubeconfig import Endpoint, load_kubeconfig

_FAILED: Final = (DialError, BadAnswer, BodyAborted, OSError, ValueError)


class TLSTransport:
    """Sends the requests of one user to the API server of an endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Callable[[], str] | None = None,
        *,
        again: bool | None = None,
        longest: int = sys.maxsize - 1,
    ) -> None:
        """Create a transport; `credentials` returns the Authorization header in place of the endpoint's.

        `again` is passed to `net.client.transport.Transport.send`. A response that is read whole may have `longest`
        bytes.
        """
        self._endpoint = endpoint
        self._credentials = credentials or endpoint.credentials
        self._again = again
        self._longest = longest
        self._prefix = endpoint.target.partition("?")[0].rstrip("/")
        self._host = endpoint.url.partition("://")[2].partition("/")[0]
        self._transport = Transport(
            endpoint.tls, endpoint.server_name, protocols=endpoint.protocols, locate=endpoint.locate
        )

    @classmethod
    def from_kubeconfig(cls, path: Path) -> TLSTransport:
        """Return a transport for the current context of a kubeconfig. Raises KubeconfigError."""
        return cls(load_kubeconfig(path))

    def with_token(self, token: Callable[[], str]) -> TLSTransport:
        """Return a transport to the same server with a bearer token; `token` is called for each request."""
        return TLSTransport(self._endpoint, lambda: f"Bearer {token()}")

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> _Response:
        """Send a request and return its response once its head has arrived.

        Raises Unreachable, also if the credentials cannot be obtained.
        """
        headers = [("Host", self._host), *fields]
        if body:
            headers.append(("Content-Length", str(len(body))))
        try:
            if credentials := self._credentials():
                headers.append(("Authorization", credentials))
            answer = await self._transport.send(
                self._endpoint.address, method, self._prefix + target, headers, whole=body, again=self._again
            )
        except _FAILED as error:
            raise Unreachable(f"{method} {self._endpoint.shown}: {error}") from None
        return _Response(answer, self._longest)

    async def aclose(self) -> None:
        """Close the idle connections."""
        self._transport.close()


class _Response:
    """A response whose body is still arriving."""

    def __init__(self, answer: Answer, longest: int) -> None:
        self._answer = answer
        self._longest = longest
        self.status = answer.status

    def header(self, name: str) -> str:
        return self._answer.header(name)

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._answer:
                yield piece
        except _FAILED as error:
            raise Unreachable(str(error)) from None

    async def read(self) -> bytes:
        try:
            data = await self._answer.read(self._longest + 1)
        except _FAILED as error:
            raise Unreachable(str(error)) from None
        if len(data) > self._longest:
            raise Unreachable(f"the answer is longer than {self._longest} bytes")
        return data

    async def aclose(self) -> None:
        await self._answer.close()
