"""The front: an HTTP server on loopback that serves the page, its streams and its requests to the API server."""

from __future__ import annotations

import html
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from steersman.client.client import Client
from steersman.client.over_tls import TLSTransport
from steersman.client.transport import Transport, Unreachable
from steersman.inspector.channel import Channel
from steersman.inspector.cluster_view import ClusterView
from steersman.inspector.explanations import MOST_MANIFESTS, Explanations
from steersman.inspector.forwarding import AGENT, INERT, forward
from steersman.inspector.guard import Guard, Refused
from steersman.inspector.page_files import COMMON, page_file
from steersman.inspector.rates import RatesView
from steersman.net.limits import Limits
from steersman.net.message import BodyAborted, BodyTooLarge, Request, Response
from steersman.net.server import HttpServer
from steersman.net.websocket.streams import handshake, is_websocket_request
from steersman.webhooks.kubeconfig import Endpoint

logger = logging.getLogger(__name__)

API: Final = "/k8s"
"""Prefix of requests that are passed on to the API server."""
CHANNEL: Final = "/channel"
INFO: Final = "/info"
WHY: Final = "/why"
WHAT_IF: Final = "/what-if"
_LIMITS: Final = Limits(max_connections=256, max_header_bytes=64 << 10, idle_timeout=300.0)
_MOST_PARAMETERS: Final = 8
_HTML: Final = ("content-type", "text/html; charset=utf-8")
_NO_STORE: Final = ("cache-control", "no-store")
_ENTERED: Final = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    b'<title>Steersman</title><p><a href="/">Continue</a></p></html>\n'
)
"""Page that leads on to the page itself. A redirect would count as sent by the site with the link, and browsers send no
SameSite=Strict cookie then. The token leaves the address bar.
"""


class Info(msgspec.Struct, rename="camel"):
    """Facts about the front that the page shows: address of the API server, context and namespace of the kubeconfig."""

    server: str
    context: str = ""
    namespace: str = ""


class Front:
    """Serves the page of one API server on 127.0.0.1: `start`, then `stop`.

    `announce` is called with the address that opens the page, a new one after each use.
    """

    def __init__(self, transport: Transport, info: Info, announce: Callable[[str], None]) -> None:
        self._transport = transport
        self._info = info
        self._announce = announce
        client = Client(transport, AGENT)
        self._cluster = ClusterView(client)
        self._rates = RatesView(client)
        self._explanations = Explanations(client)
        self._sources = {"cluster": self._cluster.read, "rates": self._rates.read}
        self._guard: Guard | None = None
        self._server: HttpServer | None = None

    async def start(self, port: int = 0) -> int:
        """Listen on a port of 127.0.0.1 and return it; 0 takes a free one. Raises OSError."""
        server = HttpServer(self._answer, limits=_LIMITS)
        _, port = await server.start("127.0.0.1", port)
        self._server = server
        self._guard = Guard(port, lambda token: self._announce(f"http://127.0.0.1:{port}/?token={token}"))
        return port

    async def stop(self) -> None:
        """Close all connections."""
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._routed(request)
        except Refused as refusal:
            return _refusal(request, refusal)
        except Unreachable as error:
            return _refusal(request, Refused(502, f"The API server does not answer: {error}"))
        except BodyAborted:
            return Response(400, close=True)

    async def _routed(self, request: Request) -> Response:
        guard = self._guard
        assert guard is not None
        guard.check_host(request.host)
        path = request.path
        if path == "/" and request.method == "GET" and "token=" in request.query:
            return self._enter(guard, request)
        guard.check_session(request.headers)
        if path == CHANNEL:
            guard.check_channel(request.headers, request.host)
            return self._channel(request)
        if path.startswith(f"{API}/"):
            guard.check_script(request.headers, request.host)
            target = path[len(API) :] + (f"?{request.query}" if request.query else "")
            return await forward(request, target, self._transport)
        if path == WHAT_IF and request.method == "POST":
            guard.check_script(request.headers, request.host)
            return await self._plan(request)
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, f"{request.method} is not allowed here.")
        if path == INFO:
            guard.check_script(request.headers, request.host)
            return _json(msgspec.json.encode(self._info))
        if path == WHY:
            guard.check_script(request.headers, request.host)
            return await self._explanation(request)
        found = page_file(path[1:]) if path.startswith("/") else None
        if found is None:
            raise Refused(404, "There is no such page.")
        return found

    async def _explanation(self, request: Request) -> Response:
        """Answer with the explanation of the object that the query names, without one with what is unhealthy.

        A namespace without a name limits what is unhealthy to its objects.
        """
        asked = _query(request)
        kind, namespace = asked.get("kind", ""), asked.get("namespace", "")
        if not asked.get("name"):
            return _json(await self._explanations.overview(namespace))
        return _json(await self._explanations.explanation(kind, namespace, asked["name"]))

    async def _plan(self, request: Request) -> Response:
        """Answer with the plan of the manifests in the body; objects without a namespace are in that of the query."""
        try:
            manifests = await request.body.read(MOST_MANIFESTS)
        except BodyTooLarge:
            raise Refused(413, f"The manifests are longer than {MOST_MANIFESTS} bytes.") from None
        namespace = _query(request).get("namespace") or self._info.namespace or "default"
        return _json(await self._explanations.plan(manifests, namespace))

    def _enter(self, guard: Guard, request: Request) -> Response:
        """Open a session for the token in the address. A browser that has one already is led on."""
        try:
            cookie = guard.open_session(_query(request).get("token", ""))
        except Refused:
            if not guard.has_session(request.headers):
                raise
            return Response(200, [*COMMON, _HTML, _NO_STORE], _ENTERED)
        return Response(200, [*COMMON, _HTML, _NO_STORE, ("set-cookie", cookie)], _ENTERED)

    def _channel(self, request: Request) -> Response:
        if not is_websocket_request(request.headers):
            raise Refused(426, "This path is a WebSocket.")
        response = handshake(request.headers, protocol="")
        if response.status == 101:
            response.upgrade = Channel(self._transport, self._sources).serve
        return response


@asynccontextmanager
async def serving(
    endpoint: Endpoint, context: str, announce: Callable[[str], None], port: int = 0
) -> AsyncIterator[Front]:
    """Serve the page of an API server inside the block, with the rights of `endpoint`. Raises OSError.

    `context` is the context of the kubeconfig, "" for the current one.
    """
    transport = TLSTransport(endpoint)
    front = Front(transport, Info(endpoint.shown, context, endpoint.namespace), announce)
    try:
        await front.start(port)
        yield front
    finally:
        await front.stop()
        await transport.aclose()


def _query(request: Request) -> dict[str, str]:
    """Return the parameters of a request; the last one of a name counts. Raises Refused for more than a few."""
    try:
        return dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS))
    except ValueError:
        raise Refused(400, "The query has too many parameters.") from None


def _json(body: bytes) -> Response:
    return Response(200, [*INERT, ("content-type", "application/json")], body)


def _refusal(request: Request, refusal: Refused) -> Response:
    """Return an error: JSON for scripts, a short page for people."""
    status, text = refusal.status, str(refusal)
    if request.path in ("/", "") or "text/html" in request.headers.get("accept", ""):
        body = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Steersman</title>'
            f"<h1>{status}</h1><p>{html.escape(text)}</p></html>\n"
        )
        return Response(status, [*COMMON, _HTML, _NO_STORE], body.encode())
    return Response(
        status, [*INERT, ("content-type", "application/json")], msgspec.json.encode({"code": status, "message": text})
    )
