"""The server behind an APIService: forwarding of clients' requests, and this server's own requests to it.

Follows kube-aggregator's `apiserver` (proxyHandler). The request user is passed on in the header fields X-Remote-User,
-Uid, -Group and -Extra-. The backend trusts these fields from a client with this server's client certificate.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from steersman.aggregator.client_identity import BackendTLSError, ClientIdentity
from steersman.aggregator.remote_service import Registration, ServiceKey
from steersman.aggregator.service_resolver import HostPort, NoRoute, ServiceResolver
from steersman.authentication.user import UserInfo
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.proxy.location import Location, encoded_query, escaped_path, join_path
from steersman.endpoints.proxy.passing import ended_with
from steersman.endpoints.proxy.rewriting import Rewriter
from steersman.endpoints.proxy.upgrade_aware import (
    connect_upgraded,
    forwarded_for,
    is_upgrade_request,
    passed_back,
    request_fields,
    taken_over,
    upgrade_headers,
)
from steersman.endpoints.request import Request
from steersman.endpoints.responses import text_response
from steersman.faults.fault import Call
from steersman.faults.fault_set import ANNOTATION, FaultSet
from steersman.faults.faulty_sender import FaultyDialer
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.strings import to_lower
from steersman.net.body import EmptyBody
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError, host_port
from steersman.net.client.egress import Dial
from steersman.net.client.http1 import UnaskedUpgrade
from steersman.net.client.tls import HTTP2, Protocols
from steersman.net.client.transport import Address, Dialer, Nearby, Transport, bounded
from steersman.net.message import BodyAborted, Response
from steersman.tracing.trace import UNRECORDED, current_recorder, http_client_span, outgoing

logger = logging.getLogger(__name__)

DISCOVERY_TIMEOUT: Final = 5.0
"""Seconds until the answer to a request for a resource list must begin."""
_PARTS_OF_DISCOVERY: Final = 3
_FORWARDED: Final = frozenset({"x-forwarded-host", "x-forwarded-proto", "audit-id"})
"""Fields of clients that are not passed on, as this server sets them."""
_MOST_PROXIES: Final = 16
"""The most proxies on the way of a request. An APIService may lead back to this server on any path, and without a limit
its requests would circulate until the sockets run out.
"""
_REDIRECTED: Final = b"the backend attempted to redirect this request, which is not permitted"
_KEY_CHARACTERS: Final = frozenset("!#$&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~")
"""Characters of a field name (RFC 9110 5.6.2), without the escape character."""


class Unreachable(Exception):
    """Raised when the backend gave no answer; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of a backend to this server; `body` is None if it is too long."""

    status: int
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class SharedSettings:
    """Settings and services that all backends share. `open_ones` are tasks that end when the server stops."""

    resolver: ServiceResolver
    identity: ClientIdentity
    metrics: RequestMetrics
    open_ones: set[object]
    reject_redirects: bool = True
    nearby: Nearby | None = None
    """Resolves addresses that are in this process and not on the network."""
    leave: Dial | None = None
    """Dials connections to all other addresses; None for a direct connection."""
    faults: FaultSet | None = None
    """Faults of requests to backends, if there are any."""


class Backend:
    """The server behind one APIService; see the module."""

    def __init__(self, registration: Registration, shared: SharedSettings) -> None:
        self._shared = shared
        self.registration = registration
        self._key = _key_of(registration)
        self._transport = self._new_transport()
        shared.resolver.watch((self._key.namespace, self._key.name))

    def update(self, registration: Registration) -> None:
        """Handle a change of the APIService; a new CA bundle counts from the next connection on."""
        self.registration = registration
        key = _key_of(registration)
        if key == self._key:
            return
        resolver = self._shared.resolver
        resolver.watch((key.namespace, key.name))
        resolver.unwatch((self._key.namespace, self._key.name))
        self._key = key
        self._transport.close()
        self._transport = self._new_transport()

    def close(self) -> None:
        """Close idle connections; answers in progress continue."""
        self._transport.close()
        self._shared.resolver.unwatch((self._key.namespace, self._key.name))

    def _new_transport(self) -> Transport:
        shared = self._shared
        return Transport(self._tls, self._key.server_name, protocols=HTTP2, nearby=shared.nearby, leave=shared.leave)

    def _tls(self, protocols: Protocols = HTTP2) -> ssl.SSLContext:
        registration = self.registration
        return self._shared.identity.tls(registration.ca_bundle, insecure=registration.insecure, protocols=protocols)

    def _sender(self, request: Request | None = None) -> Dialer:
        """Return the sender of a request, of a client's one if that is given, with the fault that hits it."""
        faults = self._shared.faults
        fault = None if faults is None else faults.choose_for_call(Call("api_services", (self.registration.name,)))
        if fault is None:
            return self._transport
        if request is not None and request.audit is not None:
            request.audit.annotate(ANNOTATION, fault.name)
        return FaultyDialer(fault, self._transport)

    async def address(self) -> HostPort:
        """Return host and port of the backend. Raises NoRoute."""
        return await self._shared.resolver.resolve(self._key)

    # Requests from clients

    async def answer(self, request: Request) -> Response:
        """Forward a client's request and return the backend's answer, or upstream's error if there is none."""
        if not self.registration.is_available:
            return self._refused(request, 503, "service unavailable")
        if request.headers.joined("x-forwarded-for").count(",") >= _MOST_PROXIES:
            logger.error("%s is forwarded in a circle; it is not sent to %s again", request.info.path, self._key)
            return self._refused(request, 503, "service unavailable")
        try:
            self._tls()
        except BackendTLSError as error:
            return self._refused(request, 500, str(error))
        try:
            address = await self.address()
        except NoRoute as error:
            logger.error("error resolving %s: %s", self._key, error)
            return self._refused(request, 503, "service unavailable")
        try:
            if is_upgrade_request(request):
                return await ended_with(self._shared.open_ones, self._upgrade(request, address))
            if request.info.long_running:
                return await ended_with(self._shared.open_ones, self._forward(request, address))
            return await self._forward(request, address)
        except StatusError as error:
            if error.code == 429:
                raise
            return text_response(503, f"{error.message}\n")
        except Unreachable as error:
            return text_response(503, f"error trying to reach service: {error}\n")

    def _refused(self, request: Request, code: int, text: str) -> Response:
        metrics = self._shared.metrics
        verb, _, group, version, resource, subresource, scope, _ = metrics.labels(request.info, dry_run=False)
        metrics.terminations.inc((verb, group, version, resource, subresource, scope, "aggregator", str(code)))
        return text_response(code, f"{text}\n")

    async def _forward(self, request: Request, address: HostPort) -> Response:
        path, authority = escaped_path(request.info.path), host_port(*address)
        headers, chunked = request_fields(request, authority, _FORWARDED)
        headers += identity_fields(request.user)
        headers += [
            ("Audit-Id", request.audit_id),
            ("X-Forwarded-Host", authority),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Uri", _cleaned(path)),
        ]
        body = request.http.body
        pieces = None if isinstance(body, EmptyBody) else aiter(body)
        target = f"{path}?{_query(request)}" if request.http.query else path
        spanning = (
            http_client_span(request.method, f"https://{authority}{target}") if current_recorder() else UNRECORDED
        )
        with spanning as opened:
            if passed := outgoing():
                names = {name for name, _ in passed}
                headers = [*(each for each in headers if to_lower(each[0]) not in names), *passed]
            sender = self._sender(request)
            sending = sender.send(Address(*address), request.method, target, headers, pieces, chunked=chunked)
            answer = await self._begun(request, sending)
            if opened is not None and isinstance(answer, Answer):
                opened.set("network.protocol.version", answer.version)
                opened.set("http.response.status_code", answer.status)
        if isinstance(answer, Response):
            return answer
        if self._shared.reject_redirects and 300 <= answer.status <= 399 and answer.header("location"):
            await answer.close()
            return Response(502, [("content-type", "text/plain; charset=utf-8")], _REDIRECTED)
        return await passed_back(request, answer, Rewriter("", authority, authority, ("https", authority)))

    async def _begun(self, request: Request, sending: Awaitable[Answer]) -> Answer | Response:
        """Return the answer once it begins, or the response to an upgrade that was not requested. Raises Unreachable."""
        try:
            if _is_discovery(request):
                async with asyncio.timeout(DISCOVERY_TIMEOUT):
                    return await sending
            return await sending
        except TimeoutError:
            raise Unreachable("context deadline exceeded") from None
        except UnaskedUpgrade as error:
            return text_response(503, f"{error}\n")
        except (DialError, BadAnswer, BackendTLSError, ValueError) as error:
            raise Unreachable(str(error)) from None

    async def _upgrade(self, request: Request, address: HostPort) -> Response:
        authority = host_port(*address)
        more = [forwarded_for(request), ("Audit-Id", request.audit_id), *identity_fields(request.user)]
        headers = upgrade_headers(request.headers, authority, more)
        location = Location(
            scheme="https",
            host=address[0],
            port=address[1],
            path=request.info.path,
            query=_query(request),
            transport=self._sender(request),
        )
        connection, answer = await connect_upgraded(location, request.method, headers)
        return taken_over(connection, answer)

    # Requests of this server

    async def fetch(
        self, path: str, user: UserInfo, headers: Iterable[tuple[str, str]] = (), *, limit: int, seconds: float
    ) -> Fetched:
        """Return the answer to a GET, whether the backend is available or not. Raises Unreachable, NoRoute.

        `limit` is in bytes of the body, `seconds` for the whole request.
        """
        address = await self.address()
        fields = [("Host", host_port(*address)), ("User-Agent", "Go-http-client/1.1"), *headers, *identity_fields(user)]
        try:
            async with asyncio.timeout(seconds):
                answer = await self._sender().send(Address(*address), "GET", path, fields)
                status, status_and_headers = answer.status, dict(reversed(answer.headers))
                return Fetched(status, status_and_headers, await bounded(answer, limit, seconds))
        except TimeoutError:
            raise Unreachable("context deadline exceeded") from None
        except (DialError, BadAnswer, BackendTLSError, BodyAborted, ValueError) as error:
            raise Unreachable(str(error)) from None

    async def probe(self, path: str, user: UserInfo, address: HostPort) -> int:
        """Return the status of the answer to a GET. Raises Unreachable."""
        fields = [("Host", host_port(*address)), ("User-Agent", "Go-http-client/1.1"), *identity_fields(user)]
        answer: Answer | None = None
        try:
            answer = await self._sender().send(Address(*address), "GET", path, fields)
            return answer.status
        except (DialError, BadAnswer, BackendTLSError, ValueError) as error:
            raise Unreachable(str(error)) from None
        finally:
            if answer is not None:
                await answer.close()


def _key_of(registration: Registration) -> ServiceKey:
    if registration.service is None:
        raise ValueError(f"{registration.name} is served by this server")
    return registration.service


def identity_fields(user: UserInfo) -> list[tuple[str, str]]:
    """Return the header fields that tell an aggregated server the request user."""
    fields = [("X-Remote-User", user.name)]
    if user.uid:
        fields.append(("X-Remote-Uid", user.uid))
    fields += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra.items():
        name = (_escaped_key if len(key) <= _LONGEST_CACHED else _escaped_key.__wrapped__)(key)
        fields += [(f"X-Remote-Extra-{name}", value) for value in values]
    return fields


_LONGEST_CACHED: Final = 256
"""The longest cached key in characters; users who may impersonate choose the keys."""


@lru_cache(1024)
def _escaped_key(key: str) -> str:
    """Return a key escaped for a field name; Go canonicalizes the letters of such names."""
    return "".join(
        each if each in _KEY_CHARACTERS else "".join(f"%{byte:02X}" for byte in each.encode()) for each in key
    )


def _query(request: Request) -> str:
    """Return the query as Go would re-encode it: sorted by name, without invalid parts."""
    text = request.http.query
    if not text:
        return ""
    if "%" not in text and "+" not in text and "&" not in text and ";" not in text:
        name, equals, value = text.partition("=")
        if name.isalnum() and equals and value.isalnum() and text.isascii():
            return text
    return encoded_query(request.query.pairs)


def _cleaned(path: str) -> str:
    if "//" not in path and "/." not in path:
        return path
    cleaned = join_path(path)
    return f"{cleaned}/" if path.endswith("/") and cleaned != "/" else cleaned


def _is_discovery(request: Request) -> bool:
    info = request.info
    return not info.resource_request and info.path.strip("/").count("/") == _PARTS_OF_DISCOVERY - 1
