"""Requests of a server to itself: passed to its handler in memory, without a connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from steersman.net.ascii import lower
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.in_process import ClientResponse, InProcessClient
from steersman.net.message import BodyAborted, Handler

if TYPE_CHECKING:  # spares servers that send no such requests the import
    from steersman.net.client.transport import Address, Sender


class OwnServer:
    """A `Sender` that passes every request to a handler in this process, regardless of the address."""

    def __init__(self, handler: Handler) -> None:
        self._client = InProcessClient(handler)

    def close(self) -> None:
        """Do nothing: there are no connections."""

    async def send(
        self,
        _: Address,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        chunked: bool = False,
        whole: bytes = b"",
        again: bool | None = None,
    ) -> Answer:
        """Return the handler's answer. Raises BadAnswer if the answer is cut off."""
        fields = [(lower(name), value) for name, value in headers if lower(name) != "host"]
        try:
            return _OwnAnswer(await self._client.request(method, target, fields, whole if body is None else body))
        except BodyAborted:
            raise BadAnswer("EOF") from None


class _OwnAnswer(Answer):
    def __init__(self, response: ClientResponse) -> None:
        super().__init__()
        self.status = response.status
        self.headers = list(response.headers.sent)
        self._response = response

    def whole(self) -> bytes | None:
        return None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response:
            yield piece

    def cut_off(self) -> None:
        """Do nothing: the answer is not passed on to a client."""

    async def close(self) -> None:
        await self._response.aclose()


class ThisServer(Struct, frozen=True):
    """A server's access to itself: a sender, and the token by which the server authenticates its own requests
    (apiserver `util/webhook` NewDefaultAuthenticationInfoResolverWrapper).
    """

    sender: Callable[[], Sender]
    token: Callable[[], str]
