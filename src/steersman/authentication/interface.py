"""The authentication interface: from credentials to a user (k8s.io/apiserver `authentication/authenticator`).

Most authenticators answer from memory. Therefore `authenticate` is a plain function whose result may be an awaitable;
only an authenticator that asks another server, such as a webhook, returns one. A caller writes

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
    """Invalid credentials: the request is answered with 401, never treated as anonymous.

    The text is for the server's log, not for the client; it never contains the credential.
    """


class Remarks(Struct, frozen=True):
    """Remarks on valid credentials: annotations for the audit event, and warnings for the client."""

    annotations: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


NO_REMARKS: Final = Remarks()


class Credentials(Struct):
    """The credentials of a request.

    `bearer_token` is from the Authorization header or the WebSocket subprotocol. `client_certificate` is the peer's
    leaf certificate (DER); `certificate_verified` is True if TLS has verified its chain against the client CAs, and
    `authorities` are the certificates above it. `headers` are by lower-case name, `path` is without the query. An
    authenticator may set `remarks`, which apply if the credentials are valid.
    """

    bearer_token: str | None = None
    client_certificate: bytes | None = None
    certificate_verified: bool = False
    headers: Headers = field(default_factory=lambda: Headers.from_pairs(()))
    path: str = ""
    authorities: tuple[bytes, ...] = ()
    remarks: Remarks = NO_REMARKS


class Authenticator(Protocol):
    """An authenticator of requests."""

    def authenticate(self, credentials: Credentials) -> UserInfo | Awaitable[UserInfo | None] | None:
        """Return the user, or None if the authenticator is not responsible for these credentials.

        Raises AuthenticationError (from the call or the awaitable) for invalid credentials of its kind.
        """
        ...


class TokenIdentity(Struct, frozen=True):
    """The user of a bearer token, and the requested audiences that the token is valid for (() if none were
    requested).
    """

    user: UserInfo
    audiences: tuple[str, ...] = ()
    remarks: Remarks = NO_REMARKS


class TokenAuthenticator(Protocol):
    """An authenticator of bearer tokens; TokenReview uses it without a request."""

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Return the user of `token` if it is valid for one of `audiences`; None if the authenticator is not
        responsible.

        Raises AuthenticationError as `Authenticator.authenticate` does.
        """
        ...
