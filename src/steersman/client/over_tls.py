"""Transport to a remote API server, configured by a kubeconfig."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from steersman.client.exec_credentials import Credential, ExecCredentials, PluginError
from steersman.client.transport import Fields, Unreachable
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.proxy_environment import OneProxy
from steersman.net.client.tls import ClientTLS
from steersman.net.client.transport import Transport
from steersman.net.message import BodyAborted
from steersman.webhooks.kubeconfig import Endpoint
from steersman.webhooks.user_kubeconfig import load_kubeconfigs

LONGEST_RESPONSE: Final = 256 << 20
"""Most bytes of a response that is read whole: pages of lists have a few MiB."""
_UNAUTHORIZED: Final = 401
_FAILED: Final = (DialError, BadAnswer, BodyAborted, OSError, ValueError)


class TLSTransport:
    """Sends the requests of one user to the API server of an endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Callable[[], str] | None = None,
        *,
        again: bool | None = None,
        longest: int = LONGEST_RESPONSE,
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
        self._own = () if credentials is not None else tuple(endpoint.impersonation)
        self._plugin: ExecCredentials | None = None
        if credentials is None and endpoint.plugin is not None and endpoint.tls_with is not None:
            self._plugin = ExecCredentials(endpoint.plugin, endpoint.tls_with)
        self._tls: ClientTLS = endpoint.tls
        self._transport = Transport(
            lambda protocols: self._tls(protocols),
            endpoint.server_name,
            None if endpoint.proxy is None else OneProxy(endpoint.proxy),
            protocols=endpoint.protocols,
            locate=endpoint.locate,
        )

    @classmethod
    def from_kubeconfig(cls, path: Path) -> TLSTransport:
        """Return a transport for the current context of a kubeconfig. Raises KubeconfigError."""
        return cls(load_kubeconfigs([path]))

    def with_token(self, token: Callable[[], str]) -> TLSTransport:
        """Return a transport to the same server with a bearer token; `token` is called for each request."""
        return TLSTransport(self._endpoint, lambda: f"Bearer {token()}", longest=self._longest)

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> _Response:
        """Send a request and return its response once its head has arrived.

        Raises Unreachable, also if the credentials cannot be obtained.
        """
        headers = [("Host", self._host), *self._own, *fields]
        if body:
            headers.append(("Content-Length", str(len(body))))
        try:
            if credentials := self._credentials():
                headers.append(("Authorization", credentials))
            elif self._plugin is not None:
                answer = await self._send_with(self._plugin, method, target, headers, body)
                return _Response(answer, self._longest)
            answer = await self._pass_on(method, target, headers, body)
        except _FAILED as error:
            raise Unreachable(f"{method} {self._endpoint.shown}: {error}") from None
        return _Response(answer, self._longest)

    async def _send_with(
        self, plugin: ExecCredentials, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> Answer:
        """Send a request with the credentials of a plugin, and once again with new ones if they are refused."""
        used = await _obtained(plugin.current())
        answer = await self._pass_on(method, target, self._as(used, headers), body)
        if answer.status != _UNAUTHORIZED:
            return answer
        await answer.close()
        renewed = await _obtained(plugin.renewed(used))
        return await self._pass_on(method, target, self._as(renewed, headers), body)

    def _as(self, credential: Credential, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Use a credential's certificate from now on, and return header fields with its token."""
        self._tls = credential.tls or self._endpoint.tls
        return [*headers, ("Authorization", f"Bearer {credential.token}")] if credential.token else headers

    async def _pass_on(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        return await self._transport.send(
            self._endpoint.address, method, self._prefix + target, headers, whole=body, again=self._again
        )

    async def aclose(self) -> None:
        """Close the idle connections."""
        self._transport.close()


async def _obtained(credential: Awaitable[Credential]) -> Credential:
    """Return a credential. Raises OSError with client-go's words."""
    try:
        return await credential
    except PluginError as error:
        raise OSError(f"getting credentials: {error}") from None


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
