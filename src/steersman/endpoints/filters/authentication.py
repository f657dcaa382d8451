"""Finds out who sends a request (WithAuthentication)."""

from __future__ import annotations

import base64
import binascii
import logging

from steersman.authentication.interface import AuthenticationError, Authenticator, Credentials
from steersman.authentication.user import UserInfo
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors import unauthorized
from steersman.net.message import Headers, Response

logger = logging.getLogger(__name__)

_PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io."


def with_authentication(authenticator: Authenticator, metrics: RequestMetrics) -> Filter:
    """Sets `request.user`; 401 for credentials that are not good, or where anonymous requests are not allowed."""

    async def authentication(request: Request, next_: Handler) -> Response:
        headers, peer = request.headers, request.http.peer
        credentials = Credentials(
            bearer_token(headers), peer.certificate, peer.certificate is not None, headers, request.path
        )
        try:
            user = authenticator.authenticate(credentials)
            if user is not None and not isinstance(user, UserInfo):
                user = await user
        except AuthenticationError as error:
            logger.info("Unable to authenticate the request: %s", error)
            metrics.authentication_attempts.inc(("error",))
            user = None
        else:
            metrics.authentication_attempts.inc(("success" if user else "failure",))
        if user is None:
            response = error_response(request, unauthorized())
            response.close = request.http.version == "2"
            return response
        request.user = user
        headers.pop("authorization", None)
        return await next_(request)

    return authentication


def bearer_token(headers: Headers) -> str | None:
    """The token of the Authorization header, or that a browser's WebSocket carries as a subprotocol."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, token = authorization.strip().partition(" ")
        return token.strip() or None if scheme.lower() == "bearer" else None
    if "websocket" not in headers.get("upgrade", "").lower():
        return None
    for protocol in headers.get("sec-websocket-protocol", "").split(","):
        protocol = protocol.strip()
        if protocol.startswith(_PROTOCOL_PREFIX):
            encoded = protocol[len(_PROTOCOL_PREFIX) :]
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            except (binascii.Error, UnicodeDecodeError):
                return None
    return None
