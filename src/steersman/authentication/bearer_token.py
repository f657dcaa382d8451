"""Bearer tokens: extracting them from requests, and authentication by them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable
from typing import Final

from steersman.authentication.interface import (
    AuthenticationError,
    Credentials,
    TokenAuthenticator,
    TokenIdentity,
)
from steersman.authentication.user import UserInfo
from steersman.machinery.go.strings import to_lower, trim_space

SPACE_WARNING: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
"""Warning for a client whose Authorization header `has_misplaced_space`."""

_SUBPROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
_MOST_SUBPROTOCOLS: Final = 1000


def bearer_token(authorization: str) -> str | None:
    """Return the token of an Authorization header with the Bearer scheme (RFC 6750), or None."""
    parts = trim_space(authorization).split(" ", 2)
    if len(parts) < 2 or to_lower(parts[0]) != "bearer":
        return None
    return parts[1] or None


def has_misplaced_space(authorization: str) -> bool:
    """Return True if the header's token is ignored because two spaces precede it."""
    parts = trim_space(authorization).split(" ", 2)
    return len(parts) == 3 and to_lower(parts[0]) == "bearer" and not parts[1]


def subprotocol_token(protocols: str) -> tuple[str | None, str]:
    """Return the token among the values of a Sec-WebSocket-Protocol header, or None, and the header without it.

    For clients that cannot set headers: `base64url.bearer.authorization.k8s.io.<base64url of the token, unpadded>`.
    Raises AuthenticationError if the token occurs twice, cannot be decoded, is the only value, or if there are over
    1,000 values.
    """
    if _SUBPROTOCOL_PREFIX not in protocols:
        return None, protocols
    if protocols.count(",") > _MOST_SUBPROTOCOLS:
        raise AuthenticationError("too many subprotocols")
    others: list[str] = []
    encoded: str | None = None
    for protocol in map(str.strip, protocols.split(",")):
        if not protocol.startswith(_SUBPROTOCOL_PREFIX):
            others.append(protocol)
        elif encoded is not None:
            raise AuthenticationError("multiple base64.bearer.authorization tokens specified")
        else:
            encoded = protocol.removeprefix(_SUBPROTOCOL_PREFIX)
    if not encoded:
        return None, protocols
    token = _decoded(encoded)
    if not others:
        raise AuthenticationError("missing additional subprotocol")
    return token, ",".join(others)


def _decoded(encoded: str) -> str:
    try:
        if "=" in encoded:
            raise ValueError
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationError("invalid base64.bearer.authorization token encoding") from None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("invalid base64.bearer.authorization token") from None


class BearerTokenAuthenticator:
    """Authenticates users by the bearer token of a request. An unknown token is refused."""

    def __init__(self, tokens: TokenAuthenticator, audiences: tuple[str, ...]) -> None:
        """`audiences` are the API's own: a token must be valid for one of them."""
        self._tokens = tokens
        self._audiences = audiences

    def authenticate(self, credentials: Credentials) -> UserInfo | Awaitable[UserInfo | None] | None:
        """Return the user of the bearer token, None without a token.

        Returns an awaitable if the verification of the token has to wait. Raises AuthenticationError for an invalid or
        unknown token.
        """
        token = credentials.bearer_token
        if not token:
            return None
        identity = self._tokens.authenticate_token(token, self._audiences)
        if identity is None or isinstance(identity, TokenIdentity):
            return _user(identity, credentials)
        return self._wait(identity, credentials)

    async def _wait(self, pending: Awaitable[TokenIdentity | None], credentials: Credentials) -> UserInfo:
        return _user(await pending, credentials)


def _user(identity: TokenIdentity | None, credentials: Credentials) -> UserInfo:
    if identity is None:
        raise AuthenticationError("invalid bearer token")
    credentials.remarks = identity.remarks
    return identity.user
