"""The authentication contract: from credentials to a user (k8s.io/apiserver `authentication/authenticator`).

Most authenticators answer from memory, so `authenticate` is a plain call whose answer may be an awaitable: only one
that asks somebody else (a webhook) makes its caller wait. A caller writes

    user = authenticator.authenticate(credentials)
    if user is not None and not isinstance(user, UserInfo):
        user = await user
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol

from msgspec import Struct, field

from steersman.authentication.user import UserInfo
from steersman.net.message import Headers


class AuthenticationError(Exception):
    """Credentials were given and are not good: the request ends with 401, and is never treated as anonymous.

    The text is for the server's log, not for the client; it never holds the credential.
    """


class Remarks(Struct, frozen=True):
    """What there is to say of good credentials: to the audit, by key, and to who has sent them."""

    annotations: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


NO_REMARKS: Final = Remarks()


class Credentials(Struct):
    """What a request shows of who sent it.

    `bearer_token` is that of the Authorization header, or of the WebSocket subprotocol. `client_certificate` is the
    peer's leaf certificate as DER; `certificate_verified` tells whether TLS has checked its chain against the
    client CAs, and `authorities` are the certificates above it there. `headers` are by lower-case name, `path` is
    without the query. Who judges them leaves its `remarks`, which count if they are good.
    """

    bearer_token: str | None = None
    client_certificate: bytes | None = None
    certificate_verified: bool = False
    headers: Headers = field(default_factory=lambda: Headers.of(()))
    path: str = ""
    authorities: tuple[bytes, ...] = ()
    remarks: Remarks = NO_REMARKS


class Authenticator(Protocol):
    """One way to tell who sent a request."""

    def authenticate(self, credentials: Credentials) -> UserInfo | Awaitable[UserInfo | None] | None:
        """The user, or None if these credentials are not of a kind this authenticator judges.

        Raises AuthenticationError (the call or the awaitable) for credentials of its kind that are not good.
        """
        ...


class TokenIdentity(Struct, frozen=True):
    """Whose a bearer token is, and which of the audiences asked for it is meant for (none asked: none said)."""

    user: UserInfo
    audiences: tuple[str, ...] = ()
    remarks: Remarks = NO_REMARKS


class TokenAuthenticator(Protocol):
    """One way to tell whose a bearer token is; TokenReview uses it without a request."""

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Whose `token` is, if it is meant for one of `audiences`; None if it is not of this authenticator's kind.

        Raises AuthenticationError as `Authenticator.authenticate` does.
        """
        ...
