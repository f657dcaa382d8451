"""A client of a server in this process: plain requests without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steersman.authentication.user import UserInfo
from steersman.net.in_process import ClientResponse, InProcessClient
from steersman.net.message import Headers
from steersman.testing.users import UnknownUser, User

if TYPE_CHECKING:  # imported with the first server that starts
    from steersman.controlplane.control_plane import ControlPlane


Tokens = MutableMapping[str | User, str]
"""Bearer tokens: of configured users by their names, and of other users."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Complete response."""

    status: int
    headers: Headers
    body: bytes

    def json(self) -> Any:
        """Return the body as plain data. Raises ValueError (JSONDecodeError) if it is not JSON."""
        return json.loads(self.body)


def token_of(plane: ControlPlane, tokens: Tokens, user: str | User) -> str:
    """Return the bearer token of a user: one of `tokens`, or for any `User` a new one, which is added to `tokens`.

    Raises KeyError for a name without a token.
    """
    if isinstance(user, User) and user not in tokens:
        tokens[user] = user.token or plane.token_of(UserInfo(user.name, groups=user.groups))
    try:
        return tokens[user]
    except KeyError:
        known = [each.name if isinstance(each, User) else each for each in tokens]
        raise UnknownUser(user.name if isinstance(user, User) else user, known) from None


class Client:
    """Sends requests of one user to a started control plane.

    The user "" is anonymous and sends no token.

    A target is a path with an optional query. A body that is not bytes is sent as JSON. Header fields are keyword
    arguments, with `_` for `-` (`content_type="application/json-patch+json"`). They replace `accept: application/json`
    and the user's `authorization`. Error responses are returned, not raised. BodyAborted (`steersman.net.message`) is
    raised if the server gives no response or cuts it off.
    """

    def __init__(self, plane: ControlPlane, tokens: Tokens, user: str | User) -> None:
        assert plane.server is not None, "the control plane has not started"
        self.plane = plane
        self._tokens = tokens
        self._client = InProcessClient(plane.server.handler)
        self._headers = [("accept", "application/json")]
        if user:
            self._headers.append(("authorization", f"Bearer {token_of(plane, tokens, user)}"))

    def as_user(self, user: str | User) -> Client:
        """Return a client of the same server for another user.

        "" is anonymous, and a `User` need not be configured. Raises KeyError for an unknown name.
        """
        return Client(self.plane, self._tokens, user)

    async def open(self, method: str, target: str, body: Any = None, **headers: str) -> ClientResponse:
        """Return a response to be read in pieces (`async for piece in response`), such as a watch, or to be closed
        (`aclose`).
        """
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = [pair for pair in self._headers if pair[0] not in header_fields]
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            header_fields.setdefault("content-type", "application/json")
        return await self._client.request(method, target, [*fields, *header_fields.items()], body or b"")

    async def raw(self, method: str, target: str, body: bytes | AsyncIterator[bytes], **headers: str) -> Answer:
        """Send a body as it is, or as it arrives, and return the response; the headers are added to the user's own."""
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self._client.request(method, target, [*self._headers, *header_fields.items()], body)
        return Answer(response.status, response.headers, await response.read())

    async def request(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        """Send a request and return the response."""
        response = await self.open(method, target, body, **headers)
        return Answer(response.status, response.headers, await response.read())

    async def get(self, target: str, **headers: str) -> Answer:
        """Send a GET and return the response."""
        return await self.request("GET", target, **headers)

    async def post(self, target: str, body: Any, **headers: str) -> Answer:
        """Send a POST and return the response."""
        return await self.request("POST", target, body, **headers)

    async def put(self, target: str, body: Any, **headers: str) -> Answer:
        """Send a PUT and return the response."""
        return await self.request("PUT", target, body, **headers)

    async def patch(
        self, target: str, body: Any, media: str = "application/merge-patch+json", **headers: str
    ) -> Answer:
        """Send a PATCH of the media type `media` and return the response."""
        return await self.request("PATCH", target, body, content_type=media, **headers)

    async def delete(self, target: str, body: Any = None, **headers: str) -> Answer:
        """Send a DELETE, with optional DeleteOptions as the body, and return the response."""
        return await self.request("DELETE", target, body, **headers)
