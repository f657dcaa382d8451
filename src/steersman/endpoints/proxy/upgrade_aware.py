"""Proxy: passes a request to a backend and its answer back; upgraded connections are passed byte by byte.

Follows k8s.io/apimachinery `util/proxy` (UpgradeAwareHandler, Transport) and Go's httputil.ReverseProxy.
"""

from __future__ import annotations

import logging
from collections.abc import Set
from functools import lru_cache, partial
from typing import Final

from msgspec.structs import replace

from steersman.endpoints.filters.reception import panicked
from steersman.endpoints.proxy.location import Location, escaped_path, join_path
from steersman.endpoints.proxy.passing import PassedBody, pass_bytes
from steersman.endpoints.proxy.rewriting import ENCODINGS, Rewriter, rewritten_page
from steersman.endpoints.request import Request
from steersman.machinery.errors.status import bad_request, plain_internal, service_unavailable
from steersman.machinery.go.strings import to_lower
from steersman.net.ascii import SPACE, lower
from steersman.net.body import EmptyBody
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.http1 import BROKEN, Http1Answer, UnaskedUpgrade, send
from steersman.net.http1.head import content_length
from steersman.net.http2.request import LONGEST_KNOWN_NAME
from steersman.net.message import Headers, Response, Upgraded

logger = logging.getLogger(__name__)

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "proxy-connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_CORS: Final = frozenset(
    {
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "access-control-allow-methods",
        "access-control-allow-origin",
    }
)
_OURS: Final = frozenset({"content-length", "date"})
"""Fields of an answer that the transport to the client writes itself."""
_NEVER_PASSED_ON: Final = frozenset({"authorization", "x-remote-user", "x-remote-uid", "x-remote-group"})
"""Fields of a request that are not passed on: credentials for this server, and identity headers, which only this server
may set.
"""
_EXTRA: Final = "x-remote-extra-"
_CACHE_CONTROL: Final = ("cache-control", "no-cache, private")
"""Field that upstream adds beside the backend's own Cache-Control."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_LEFT_OUT: Final = _HOP_BY_HOP | _NEVER_PASSED_ON | _FRAMING | {"expect", "x-forwarded-for", "x-forwarded-uri"}
"""Fields of a plain request that are not passed on."""


def is_upgrade_request(request: Request) -> bool:
    """Return True if the client asks for another protocol on this connection."""
    headers = request.headers
    return "upgrade" in headers and "upgrade" in _listed(headers.joined("connection")) and request.http.version != "2"


async def proxy(request: Request, location: Location, *, upgrade_required: bool = False) -> Response:
    """Return the backend's answer. Links in pages and redirects are rewritten to lead through this server.

    Raises StatusError: 400 if an upgrade is required but not requested, 500 if an upgrade fails, and 503 if the backend
    of a plain request is unreachable.
    """
    if is_upgrade_request(request):
        return await upgrade(request, location)
    if upgrade_required:
        raise bad_request("Upgrade request required")
    path = request.info.path
    suffix = location.path
    if path.endswith("/") and not suffix.endswith("/"):
        suffix += "/"
    if not suffix and request.method in ("GET", "HEAD"):
        query = f"?{request.http.query}" if request.http.query else ""
        return Response(301, [("location", f"{escaped_path(path)}/{query}")])
    location = replace(location, path=suffix or "/", query=request.http.query)
    rewriter = Rewriter(path.removesuffix(suffix), location.authority, request.http.host)
    answer = await _plain_answer(request, location, rewriter)
    return await passed_back(request, answer, rewriter)


async def _plain_answer(request: Request, location: Location, rewriter: Rewriter) -> Answer:
    headers, chunked = request_fields(request, request.http.host)
    forwarded = join_path(rewriter.prefix, escaped_path(location.path))
    headers.append(("X-Forwarded-Uri", f"{forwarded}/" if location.path.endswith("/") else forwarded))
    body = request.http.body
    pieces = None if isinstance(body, EmptyBody) else aiter(body)
    try:
        return await location.send(request.method, headers, pieces, chunked=chunked)
    except UnaskedUpgrade as error:
        raise plain_internal(str(error)) from None
    except (DialError, BadAnswer, ValueError) as error:
        raise service_unavailable(f"error trying to reach service: {error}") from None


def request_fields(
    request: Request, host: str, without: frozenset[str] = frozenset()
) -> tuple[list[tuple[str, str]], bool]:
    """Return the fields of a plain request for the backend, and True if its body is sent in chunks."""
    connection = request.headers.joined("connection")
    dropped = _LEFT_OUT | without | _listed(connection) if connection else _LEFT_OUT | without
    headers = [("Host", host)]
    headers += [
        (canonical(name), value)
        for name, value in request.headers.pairs
        if name not in dropped and not name.startswith(_EXTRA)
    ]
    headers.append(forwarded_for(request))
    if "trailers" in _listed(request.headers.joined("te")):
        headers.append(("Te", "trailers"))
    body = request.http.body
    if isinstance(body, EmptyBody):
        if request.method in ("POST", "PUT", "PATCH"):
            headers.append(("Content-Length", "0"))
        return headers, False
    length = request.headers.get("content-length")
    if length is not None and "transfer-encoding" not in request.headers:
        headers.append(("Content-Length", str(content_length([length]))))
        return headers, False
    headers.append(("Transfer-Encoding", "chunked"))
    return headers, True


def forwarded_for(request: Request) -> tuple[str, str]:
    """Return the field that tells the backend the client's address."""
    before = request.headers.joined("x-forwarded-for")
    host = request.http.peer.host
    return "X-Forwarded-For", f"{before}, {host}" if before else host


def _listed(connection: str) -> set[str]:
    """Return the names of fields listed in a Connection field, which apply to this connection only."""
    return {lower(each.strip(SPACE)) for each in connection.split(",")}


def _passed_fields(answer: Answer, dropped: Set[str]) -> list[tuple[str, str]]:
    """Return the fields of an answer that are passed on; a name with a space can be read, but not be sent."""
    return [field for field in answer.headers if field[0] not in dropped and " " not in field[0]]


def canonical(name: str) -> str:
    """Return a field's name as Go writes it."""
    return _canonical(name) if len(name) <= LONGEST_KNOWN_NAME else _canonical.__wrapped__(name)


@lru_cache(1024)
def _canonical(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


async def passed_back(request: Request, answer: Answer, rewriter: Rewriter) -> Response:
    """Return a backend's answer as this server's. Raises StatusError for a page or a redirect that cannot be
    rewritten.
    """
    try:
        if answer.status < 100:
            await answer.close()
            return panicked(f"invalid WriteHeader code {answer.status}")
        dropped = _HOP_BY_HOP | _OURS | _CORS | _listed(answer.header("connection"))
        if answer.status == 304:
            dropped |= {"content-type"}
        headers = rewriter.with_redirect(_passed_fields(answer, dropped))
        is_page = rewriter.is_page(headers)
        if answer.header("cache-control"):
            headers.append(_CACHE_CONTROL)
        if is_page and request.method == "HEAD":
            return Response(answer.status, headers, PassedBody(answer))  # the length of the rewritten page is unknown
        if is_page and (encoding := answer.header("content-encoding")) in ENCODINGS:
            page, size = await rewritten_page(rewriter, answer, encoding, request.user.name)
            await answer.close()
            return Response(answer.status, headers, PassedBody(page), length=size)
        if is_page:
            logger.warning("not rewriting the links of a page with the content encoding %r", encoding)
        if (whole := answer.whole()) is not None:
            await answer.close()
            return Response(answer.status, headers, whole)
        length = None if answer.status in (204, 304) else answer.length
        return Response(answer.status, headers, PassedBody(answer), length=length)
    except BaseException:
        await answer.close()
        raise


# Upgrades


async def upgrade(request: Request, location: Location) -> Response:
    """Ask the backend for the other protocol; the answer takes over the connection. Raises StatusError 500."""
    headers = upgrade_headers(request.headers, request.http.host, [forwarded_for(request)])
    connection, answer = await connect_upgraded(location, request.method, headers)
    return taken_over(connection, answer)


def taken_over(connection: Upgraded, answer: Http1Answer) -> Response:
    """Return the answer for a backend's answer to an upgrade: 101 connects both connections, another answer is passed
    on.
    """
    if answer.status != 101:
        return refused_upgrade(answer)
    return Response(101, _passed_fields(answer, _OURS), upgrade=partial(_take_over, connection, answer.leftover))


def upgrade_headers(
    headers: Headers, host: str, more: list[tuple[str, str]], *, without: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """Return the fields of an upgrade request for the backend: `without` some, and with `more`."""
    left_out = _NEVER_PASSED_ON | _FRAMING | without | {to_lower(name) for name, _ in more}
    kept = [
        (canonical(name), value)
        for name, value in headers.pairs
        if name not in left_out and not name.startswith(_EXTRA)
    ]
    return [("Host", host), *kept, *more]


async def connect_upgraded(
    location: Location, method: str, headers: list[tuple[str, str]]
) -> tuple[Upgraded, Http1Answer]:
    """Send an upgrade request; return the connection and the answer, with status 101 or from 400 on.

    Raises StatusError 500.
    """
    try:
        connection = await location.dial()
    except DialError as error:
        raise plain_internal(f"error dialing backend: {error}") from None
    if method in ("POST", "PUT", "PATCH"):
        headers = [*headers, ("Content-Length", "0")]
    try:
        answer = await send(connection, method, location.target, headers)
    except (BadAnswer, ValueError) as error:
        why = str(error).removeprefix(BROKEN)
        raise plain_internal("unexpected EOF" if why == "EOF" else why) from None
    if answer.status != 101 and answer.status < 400:
        await answer.close()
        raise plain_internal(f"invalid upgrade response: status code {answer.status}")
    return connection, answer


def refused_upgrade(answer: Answer) -> Response:
    """Return the backend's refusal of an upgrade; the connection is closed after it."""
    headers = _passed_fields(answer, _HOP_BY_HOP | _OURS)
    return Response(answer.status, headers, PassedBody(answer), close=True, length=answer.length)


async def _take_over(backend: Upgraded, first: bytes, client: Upgraded) -> None:
    try:
        if first:
            await client.write(first)
        await pass_bytes(client, backend)
    except ConnectionResetError:
        logger.debug("the client had gone before the backend's first bytes")
    finally:
        backend.close()
