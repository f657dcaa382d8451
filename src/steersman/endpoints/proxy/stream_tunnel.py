"""Port forwarding over a WebSocket (`SPDY/3.1+portforward.k8s.io`): its messages are the bytes of a SPDY connection.

Follows k8s.io/apiserver `util/proxy` (TunnelingHandler).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from steersman.endpoints.proxy.location import Location
from steersman.endpoints.proxy.passing import pass_bytes
from steersman.endpoints.proxy.upgrade_aware import connect_upgraded, forwarded_for, refused_upgrade, upgrade_headers
from steersman.endpoints.request import Request
from steersman.endpoints.responses import text_response
from steersman.machinery.go.strings import to_lower, trim_space
from steersman.net.message import Headers, Response, Upgraded
from steersman.net.spdy import PROTOCOL
from steersman.net.websocket.messages import MessageConnection, open_messages
from steersman.net.websocket.streams import handshake, is_websocket_request, requested_protocols

PREFIX: Final = "SPDY/3.1+"
_SUFFIX: Final = ".k8s.io"
_OF_WEBSOCKETS: Final = frozenset(
    {"sec-websocket-protocol", "sec-websocket-key", "sec-websocket-version", "x-stream-protocol-version", "upgrade"}
)
_MAX_MESSAGE: Final = 32 << 10


def is_tunneled(request: Request) -> bool:
    """Return True if the client offers a WebSocket that carries SPDY."""
    headers = request.headers
    if request.http.version == "2" or not is_websocket_request(headers):
        return False
    return bool(_spdy_protocols(headers))


def _spdy_protocols(headers: Headers) -> list[str]:
    return [
        each.removeprefix(PREFIX)
        for each in requested_protocols(headers)
        if each.startswith(PREFIX) and each.endswith(_SUFFIX)
    ]


async def tunnel(request: Request, location: Location) -> Response:
    """Return the answer that upgrades to the WebSocket, or the kubelet's refusal. Raises StatusError 500."""
    more = [forwarded_for(request), ("Upgrade", PROTOCOL)]
    more += [("X-Stream-Protocol-Version", each) for each in _spdy_protocols(request.headers)]
    headers = upgrade_headers(request.headers, request.http.host, more, without=_OF_WEBSOCKETS)
    backend, answer = await connect_upgraded(location, "POST", headers)
    if answer.status != 101:
        return refused_upgrade(answer)
    if to_lower(PROTOCOL) not in to_lower(answer.header("upgrade")):
        await answer.close()
        return text_response(500, "unable to upgrade: missing upgrade headers in response\n")
    chosen = trim_space(answer.header("x-stream-protocol-version"))
    response = handshake(request.headers, protocol=f"{PREFIX}{chosen}" if chosen else "")
    if response.status != 101:
        await answer.close()
        return response
    response.upgrade = partial(_take_over, backend, answer.leftover)
    return response


async def _take_over(backend: Upgraded, first: bytes, connection: Upgraded) -> None:
    client = _Tunnel(connection)
    try:
        await client.start(first)
        await pass_bytes(client, backend)
    except ConnectionResetError:
        return  # the client had gone before the first bytes
    finally:
        backend.close()
        await client.goodbye()


class _Tunnel:
    """A WebSocket whose messages are pieces of one byte stream in each direction."""

    def __init__(self, connection: Upgraded) -> None:
        self._connection = connection
        self._messages: MessageConnection | None = None

    async def start(self, first: bytes) -> None:
        """Open the WebSocket and send the bytes that the backend has sent already."""
        self._messages = await open_messages(self._connection)
        if first:
            await self.write(first)

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        assert self._messages is not None
        while (frame := await self._messages.receive_frame()) is not None:
            if frame[0]:
                return frame[0]
        return b""

    async def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionResetError when the client is gone."""
        assert self._messages is not None
        for at in range(0, len(data), _MAX_MESSAGE):
            await self._messages.send(data[at : at + _MAX_MESSAGE])

    def close(self) -> None:
        """Do nothing: `goodbye` closes the connection with a close frame."""

    async def goodbye(self) -> None:
        """Close the WebSocket regularly."""
        if self._messages is not None:
            await self._messages.close()
        self._connection.close()
