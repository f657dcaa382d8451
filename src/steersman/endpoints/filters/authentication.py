"""Authentication of requests (WithAuthentication)."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from steersman.authentication.bearer_token import SPACE_WARNING, bearer_token, has_misplaced_space, subprotocol_token
from steersman.authentication.interface import (
    NO_REMARKS,
    AuthenticationError,
    Authenticator,
    Credentials,
    Remarks,
)
from steersman.authentication.user import UserInfo
from steersman.endpoints.filters.audit import refused
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors.status import unauthorized
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.times import monotonic
from steersman.net.message import Headers, Response
from steersman.net.websocket.streams import is_websocket_request
from steersman.work.bounded_cache import BoundedCache

if TYPE_CHECKING:  # spares the import: a server behind no proxy does not need it
    from steersman.audit.trail import Auditor
    from steersman.authentication.request_header import HeaderRemover

logger = logging.getLogger(__name__)

_KNOWN_USERS: Final = {
    name: (name,) for name in ("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default")
}
_WITH_ADDRESS: Final = ("email_id",)
_OTHER_USERS: Final = ("other",)
_KEPT = 1024
_KEPT_LENGTH = 16 * 1024
_KEPT_SECONDS = 1.0
"""Seconds for which a valid token is cached here; a busy client's authentication thus costs one lookup."""


def with_authentication(
    authenticator: Authenticator,
    metrics: RequestMetrics,
    proxy_headers: HeaderRemover | None = None,
    auditor: Auditor | None = None,
) -> Filter:
    """Return a filter that sets `request.user`; it answers 401 to invalid credentials and forbidden anonymous requests.

    Credentials are removed from the request, so that later filters and handlers cannot see them, and so are
    `proxy_headers`, by which a trusted proxy names a user. A valid token is cached for a second, as a digest with a key
    of this process.
    """

    recent: BoundedCache[bytes, tuple[UserInfo, Remarks, float, list[float]]] = BoundedCache(_KEPT)
    successes = Successes(metrics)
    new_digest = partial(blake2b, key=os.urandom(32), digest_size=16)

    last: tuple[str, bytes] = "", b""
    """The last header and its digest: a connection that repeats a head repeats the very object."""

    def authentication(request: Request, next_: Handler) -> Awaitable[Response]:
        nonlocal last
        headers = request.headers
        authorization, digest = headers.get("authorization"), None
        if authorization is not None and request.http.peer.certificate is None and len(authorization) <= _KEPT_LENGTH:
            if authorization is last[0]:
                digest = last[1]
            else:
                digest = new_digest(authorization.encode("utf-8", "surrogateescape")).digest()
                last = authorization, digest
            known = recent[digest]
            if known is not None and known[2] > request.received:
                del headers["authorization"]
                request.user, remarks, _, of_user = known
                of_user[0] += 1
                successes.attempts[0] += 1
                if remarks is not NO_REMARKS:
                    _remark(request, remarks)
                if proxy_headers is not None:
                    proxy_headers.clear(headers)
                return next_(request)
        return authenticate(request, next_, authorization, digest)

    async def authenticate(
        request: Request, next_: Handler, authorization: str | None, digest: bytes | None
    ) -> Response:
        headers, peer = request.headers, request.http.peer
        try:
            token = _pop_token(request, headers)
            credentials = Credentials(
                token, peer.certificate, peer.certificate is not None, headers, request.info.path, peer.authorities
            )
            began = monotonic()
            user = authenticator.authenticate(credentials)
            if user is not None and not isinstance(user, UserInfo):
                user = await user
            request.authentication_seconds = monotonic() - began
        except AuthenticationError as error:
            logger.info("Unable to authenticate the request: %s", error)
            metrics.authentication_attempts.inc(("error",))
            user = None
        else:
            if user is None:
                metrics.authentication_attempts.inc(("failure",))
        if user is None:
            attempted = _attempted(authorization, with_certificate=peer.certificate is not None)
            response = refused(auditor, request, attempted, lambda: error_response(request, unauthorized()))
            response.close = request.http.version == "2"
            return response
        of_user = successes.count(user.name)
        if token and digest is not None:
            recent.keep(digest, (user, credentials.remarks, request.received + _KEPT_SECONDS, of_user))
        request.user = user
        if credentials.remarks is not NO_REMARKS:
            _remark(request, credentials.remarks)
        if proxy_headers is not None:
            proxy_headers.clear(headers)
        return await next_(request)

    return authentication


def _remark(request: Request, remarks: Remarks) -> None:
    """Attach the remarks of authentication to a request, for warnings and audit."""
    request.remarks = remarks
    request.warnings += remarks.warnings


class Successes:
    """Counter of authenticated requests by user name, for a few well-known names; others share a label, so that users
    with many names cannot exhaust memory. `attempts` is the series of all of them, once there is one.
    """

    def __init__(self, metrics: RequestMetrics) -> None:
        self._metrics = metrics
        self.attempts: list[float] = []

    def count(self, username: str) -> list[float]:
        """Count a request of this user; return the user's series, in which equal requests are counted."""
        label = _KNOWN_USERS.get(username) or (_WITH_ADDRESS if "@" in username else _OTHER_USERS)
        series = self._metrics.authentications.series(label)
        if not self.attempts:
            self.attempts = self._metrics.authentication_attempts.series(("success",))
        series[0] += 1
        self.attempts[0] += 1
        return series


def _attempted(authorization: str | None, *, with_certificate: bool) -> str:
    """Return the text for the audit about the kinds of credentials that were attempted."""
    scheme = to_lower((authorization or "").strip(" ").partition(" ")[0])
    methods = [scheme] if scheme in ("basic", "bearer") else []
    if with_certificate:
        methods.append("x509")
    if not methods:
        return "Authentication failed, no credentials provided"
    return f"Authentication failed, attempted: {', '.join(methods)}"


def _pop_token(request: Request, headers: Headers) -> str | None:
    """Remove and return the bearer token, from the Authorization header or a browser's WebSocket subprotocol.

    Raises AuthenticationError.
    """
    authorization = headers.pop("authorization", None)
    if authorization is not None:
        token = bearer_token(authorization)
        if token is None and has_misplaced_space(authorization):
            request.warnings.append(SPACE_WARNING)
        return token
    if not is_websocket_request(headers):
        return None
    token, rest = subprotocol_token(headers.joined("sec-websocket-protocol"))
    if token is not None:
        headers.replace("sec-websocket-protocol", rest)
    return token
