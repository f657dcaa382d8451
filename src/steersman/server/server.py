"""The generic API server: the catalogue of its resources, other paths, filters, hooks, checks, and graceful
shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from steersman.catalogue.catalogue import Catalogue
from steersman.endpoints.filters.consistency import ConsistencyWait
from steersman.endpoints.filters.lifetime import WaitGroup
from steersman.endpoints.filters.tracing import Endings
from steersman.endpoints.installer import Route
from steersman.endpoints.instrument import instrumented
from steersman.endpoints.request import Handler, Request, chain
from steersman.endpoints.request_info import RequestInfo
from steersman.endpoints.responses import TEXT_TYPE, error_response, not_found_text, unknown_resource
from steersman.endpoints.scope import Shared
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.urls import has_bad_escape
from steersman.machinery.identity.action import Action
from steersman.net.message import Handler as HttpHandler
from steersman.net.message import Request as HttpRequest
from steersman.net.message import Response
from steersman.net.server import HttpServer
from steersman.server.config import CompletedConfig
from steersman.server.handler_chain import layers, plain, traced
from steersman.server.health import PING, HealthCheck, HealthChecks
from steersman.server.hooks import Hook, Hooks
from steersman.server.lifecycle import Lifecycle
from steersman.tracing.propagation import TRACEPARENT
from steersman.tracing.readers import Readers
from steersman.tracing.trace import record, stop_recording
from steersman.work.offloading import bind, unbind
from steersman.work.threads import WorkerThreads

logger = logging.getLogger(__name__)

_LEAST_DRAIN: Final = 1.0
"""Least number of seconds allowed to clients for receiving the ends of their answers."""

PathHandler = Callable[[Request], Awaitable[Response]]

PARTING: Final = 1.0
"""Seconds in which HTTP/1.1 clients with kept connections are told to reconnect, which leads them to other
processes.
"""
_MOST_ROOT_PARTS: Final = 3
"""Parts of the root of a web service: "/apis/apps/v1"."""


class ExternalAddress(Struct, frozen=True):
    """The address at which others reach a server; as text HOST:PORT."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Server:
    """The generic API server."""

    def __init__(self, config: CompletedConfig) -> None:
        self.config = config
        self.lifecycle = Lifecycle()
        self.hooks = Hooks()
        self.requests = WaitGroup()
        self.watches: set[Any] = set()
        self.traces = Readers()
        shared = Shared(
            admission=config.admission,
            authorizer=config.authorizer,
            metrics=config.metrics,
            executor=config.executor,
            min_request_timeout=config.min_request_timeout,
            max_body_bytes=config.max_body_bytes,
            stopping=lambda: self.lifecycle.shutting_down,
            watches=self.watches,
        )
        self.catalogue = Catalogue(shared, config.mapper)
        config.metrics.served = self._served
        self.paths: dict[str, PathHandler] = {}
        self.prefixes: dict[str, PathHandler] = {}
        self.delegated: dict[str, PathHandler] = {}
        """Handlers of group versions on other servers, by root of a group version or "/api"; they answer everything
        below it.
        """
        self._services: set[str] = set()
        self._unlisted: set[str] = set()
        self.healthz = HealthChecks("/healthz")
        self.livez = HealthChecks("/livez")
        self.readyz = HealthChecks("/readyz")
        self.gather: Callable[[list[bytes]], Awaitable[list[bytes]]] | None = None
        """Function that merges this process's metrics with those of the server's other processes."""
        self.behind: Callable[[str, str], Awaitable[None] | None] | None = None
        """Function (group, plural) -> awaitable to wait for until all acknowledged definitions are served; None if they
        are.

        The plural is "" for a request about a whole group.
        """
        self.consistency_wait: ConsistencyWait | None = None
        """Consistency with other processes that write to the storage; must be set before `prepare_run`."""
        self.parting = 0.0
        """Seconds at shutdown in which kept connections are still answered, if other servers take over."""
        self._http: HttpServer | None = None
        self._port = config.port
        self._handler: HttpHandler | None = None
        for checks in (self.healthz, self.livez, self.readyz):
            checks.add(PING, HealthCheck("log", lambda: None))

    # Paths other than resources

    def add_path(self, path: str, handler: PathHandler, *, listed: bool = True) -> None:
        """Add a handler for exactly this path, `listed` in the index or not. Raises ValueError if the path is taken."""
        if path in self.paths:
            raise ValueError(f"path {path} is taken")
        self.paths[path] = handler
        if not listed:
            self._unlisted.add(path)

    def add_web_service(self, path: str, handler: PathHandler) -> None:
        """Add a handler as go-restful does: trailing slashes are accepted, and everything below the path is 404 as a
        Status.
        """
        self.add_path(path, handler)
        self._services.add(path)

    def remove_path(self, path: str) -> None:
        """Remove a path of `add_path` or `add_web_service`. Raises KeyError if it is missing."""
        del self.paths[path]
        self._unlisted.discard(path)
        self._services.discard(path)

    def add_prefix(self, prefix: str, handler: PathHandler, *, listed: bool = False) -> None:
        """Add a handler for this path and everything below it without a handler of its own, `listed` in the index or
        not.
        """
        self.prefixes[prefix] = handler
        if not listed:
            self._unlisted.add(prefix)

    def add_post_start_hook(self, name: str, hook: Hook) -> None:
        """Add a hook that runs once the server listens; the server is ready when all hooks have run."""
        check = self.hooks.add_post_start(name, hook)
        self.add_checks(check)

    def add_pre_shutdown_hook(self, name: str, hook: Hook) -> None:
        """Add a hook that runs at the start of the shutdown, before requests are drained."""
        self.hooks.add_pre_shutdown(name, hook)

    def add_checks(self, *checks: HealthCheck, only_ready: bool = False, alive: bool = True) -> None:
        """Add checks to all three health paths, or to readyz only, or (not `alive`) to all but livez."""
        self.readyz.add(*checks)
        if not only_ready:
            self.healthz.add(*checks)
            if alive:
                self.livez.add(*checks)

    def all_paths(self) -> list[str]:
        """Return every path that the index lists."""
        return sorted({*self.paths, *self.delegated, *self.prefixes} - self._unlisted)

    # Requests

    def handle(self, request: Request) -> Awaitable[Response]:
        """Dispatch a request to another server, a route of the catalogue, or the handler of a path."""
        info = request.info
        if self.delegated and (delegate := self._delegate(info.path)) is not None:
            return delegate(request)
        route = self.catalogue.routes.get(info.template)
        if route is not None and not route.by_definition:
            return instrumented(self.config, route, request)
        return self._handle_unless_behind(request, route)

    async def _handle_unless_behind(self, request: Request, route: Route | None) -> Response:
        """Dispatch a request for which another process may have defined a resource."""
        info = request.info
        if route is None and self.consistency_wait is not None and not request.newest and self.behind is not None:
            await self.consistency_wait.wait(request)  # the requested resource may have been defined by another process
        if (waiting := self._is_behind(request)) is not None:
            await waiting
            route = self.catalogue.routes.get(info.template)
        if route is not None and (not route.by_definition or route.is_usual(request)):
            return await instrumented(self.config, route, request)
        if info.root in self.catalogue.roots:
            action = info.action
            defined = self.catalogue.defined.get((action.group, action.version, action.resource))
            if defined is not None and defined.serves(action):
                return await instrumented(self.config, defined, request)
            return self._unknown_resource(request)
        handler = self._path_handler(info.path)
        return self._unknown(request) if handler is None else await handler(request)

    def _is_behind(self, request: Request) -> Awaitable[None] | None:
        """Return an awaitable to wait for, for a custom or unserved resource; None if there is nothing to wait for."""
        path = request.info.path
        if self.behind is None or not path.startswith("/apis/"):
            return None
        group = path.split("/", 3)[2]
        plural = request.info.action.resource if request.info.resource_request else ""
        return self.behind(group, plural)

    def _delegate(self, path: str) -> PathHandler | None:
        """Return the handler of another server for a path: the first three parts are its group version. None if there
        is none.
        """
        if path.startswith("/apis/"):
            return self.delegated.get("/".join(path.split("/", 4)[:4]))
        return self.delegated.get("/api") if path == "/api" or path.startswith("/api/") else None

    def _served(self, info: RequestInfo) -> Action:
        """Return the action for labels of metrics: without a route only the verb; for another server also the group
        version.
        """
        action = info.action
        if not info.resource_request or info.template in self.catalogue.routes:
            return action
        if self.delegated and self._delegate(info.path) is not None:
            return Action(action.verb, action.group, action.version)
        return Action(action.verb)

    def _unknown_resource(self, request: Request) -> Response:
        """Return the 404 answer below the path of a group version."""
        if self.catalogue.is_defined(request.info.root):
            return not_found_text()
        return error_response(request, unknown_resource())

    def _path_handler(self, path: str) -> PathHandler | None:
        handler = self.paths.get(path)
        if handler is None and path.endswith("/"):
            trimmed = path.rstrip("/")
            handler = self.paths.get(trimmed) if trimmed in self._services else None
        if handler is None:
            for prefix, each in self.prefixes.items():
                if path.startswith(prefix):
                    return each
        return handler

    def _unknown(self, request: Request) -> Response:
        """Return the 404 answer, as text or, below the root of a web service, as a Status."""
        at = 0
        path = request.info.path
        for _ in range(_MOST_ROOT_PARTS):
            at = path.find("/", at + 1)
            if at < 0:
                break
            if path[:at] in self._services and not self.catalogue.is_defined(path):
                return error_response(request, unknown_resource())
        return not_found_text()

    # Running

    def prepare_run(self) -> None:
        """Wrap all handlers in the filters."""
        stack = layers(self.config, self.lifecycle, self.requests, self.consistency_wait)
        filters, self.traces.filters = traced(stack)
        chains = Chains(chain(plain(stack), self.handle), chain(filters, self.handle))
        endings = Endings(self.traces)
        self._handler = _front(chains, self.traces, endings, self.config.threads)
        self.readyz.add(HealthCheck("shutdown", lambda: "shutting down" if self.lifecycle.shutting_down else None))

    @property
    def handler(self) -> HttpHandler:
        """The whole server as a handler of HTTP requests, for example for the in-process transport."""
        if self._handler is None:
            raise RuntimeError("prepare_run() comes first")
        return self._handler

    async def start(self) -> tuple[str, int]:
        """Listen and return the address. Raises OSError."""
        config = self.config
        self._http = HttpServer(self.handler, limits=config.limits, tls=config.tls)
        address = await self._http.start(config.bind_address, config.port, shares_port=config.shares_port)
        self._port = address[1]
        self.lifecycle.serving = True
        return address

    def begin(self, port: int) -> HttpServer:
        """Serve connections that another process accepts on `port`; the caller passes them to `take` of the result."""
        config = self.config
        self._http = HttpServer(self.handler, limits=config.limits, tls=config.tls)
        self._http.begin()
        self._port = port
        self.lifecycle.serving = True
        return self._http

    async def run_post_start_hooks(self) -> None:
        """Run the start hooks."""
        self.lifecycle.serving = True
        await self.hooks.run_post_start()

    async def stop(self) -> None:
        """Shut down gracefully: readyz fails, hooks run, new requests are refused, watches end, connections drain and
        close.

        Requests and connections together have `shutdown_timeout` seconds; then they are cut off.
        """
        lifecycle, config = self.lifecycle, self.config
        if self._http is not None and self.parting:
            await self._http.send_elsewhere(self.parting)
        lifecycle.shutting_down = True
        await self.hooks.run_pre_shutdown()
        if config.shutdown_delay:
            await asyncio.sleep(config.shutdown_delay)
        lifecycle.not_accepting = True
        for watch in list(self.watches):
            watch.finish()
        deadline = asyncio.get_running_loop().time() + config.shutdown_timeout
        if self._http is not None and not config.shutdown_send_retry_after:
            self._http.begin_drain()  # from now on no request arrives that would have to be refused
        try:
            async with asyncio.timeout_at(deadline):
                await self.requests.close()
        except TimeoutError:
            logger.warning("requests were still running after %g s", config.shutdown_timeout)
        if self._http is not None:
            await self._http.drain(max(deadline - asyncio.get_running_loop().time(), _LEAST_DRAIN))
            self._http = None

    async def abort(self) -> None:
        """Close all connections at once."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    @property
    def external_address(self) -> ExternalAddress:
        """The address for others; its port is 0 before the server listens on a free port."""
        return ExternalAddress(self.config.external_host, self._port)

    @property
    def http(self) -> HttpServer | None:
        """The listener while it runs, for its statistics."""
        return self._http


class Chains(NamedTuple):
    """Handlers behind the filters: of requests that are not traced, with steps of the handler, and of filters, too."""

    plain: Handler
    traced: Handler


def _front(chains: Chains, traces: Readers, endings: Endings, threads: WorkerThreads) -> HttpHandler:
    """Return the handler of HTTP requests."""
    handle, handle_traced = chains

    async def front(http: HttpRequest) -> Response:
        if "%" in http.path and has_bad_escape(http.path):
            return Response(400, [TEXT_TYPE], b"400 Bad Request", close=http.version != "2")
        request = Request(http, threads)
        token = bind(request)
        try:
            if traces.registered or TRACEPARENT in http.headers or "baggage" in http.headers:
                trace = traces.begin(http.headers)
                if trace is not None:
                    recording = record(trace)
                    request.trace, request.entered = trace, trace.entered
                    try:
                        response = await handle_traced(request)
                    except StatusError as error:
                        response = error_response(request, error)
                    except BaseException as error:
                        trace.fail(error)
                        endings.abandon(trace, request)
                        raise
                    finally:
                        stop_recording(recording)
                    if type(response.body) is bytes:
                        endings.end(trace, request, response.status, len(response.body))
                    else:
                        endings.finish(trace, request, response)
                    return response
            return await handle(request)
        except StatusError as error:
            return error_response(request, error)
        finally:
            unbind(token)
            if request.account is not None:
                request.close_account()

    return front
