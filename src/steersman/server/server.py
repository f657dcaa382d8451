"""One API server of a chain: its resources and paths, its hooks and checks, and a delegate for everything else.

The outermost server of a chain owns the listener, the filters, and what the whole chain shares: hooks, health checks
and the state of the shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from steersman.endpoints.discovery import ServedResource, served
from steersman.endpoints.filters.wait_group import WaitGroup
from steersman.endpoints.installer import Route, RouteKey, install
from steersman.endpoints.instrument import instrumented
from steersman.endpoints.request import Handler, Request, chain
from steersman.endpoints.request_info import parse_query
from steersman.endpoints.responses import error_response, not_found_text, unknown_resource
from steersman.endpoints.scope import Shared
from steersman.machinery.errors import StatusError
from steersman.machinery.scheme import Scheme
from steersman.net.message import Handler as HttpHandler
from steersman.net.message import Request as HttpRequest
from steersman.net.message import Response
from steersman.net.server import HttpServer
from steersman.rest.resource import Resource
from steersman.server.config import CompletedConfig
from steersman.server.handler_chain import filters
from steersman.server.health import PING, HealthCheck, HealthChecks
from steersman.server.hooks import Hook, Hooks
from steersman.server.lifecycle import Lifecycle

logger = logging.getLogger(__name__)

PathHandler = Callable[[Request], Awaitable[Response]]


class Server:
    """See the module. Made by `CompletedConfig.new`."""

    def __init__(self, name: str, config: CompletedConfig, delegate: Server | None) -> None:
        self.name = name
        self.config = config
        self.delegate = delegate
        self.routes: dict[RouteKey, Route] = {}
        self.served: list[ServedResource] = []
        self.group_versions: set[tuple[str, str]] = set()
        self.paths: dict[str, PathHandler] = {}
        self.prefixes: dict[str, PathHandler] = {}
        self.lifecycle: Lifecycle = delegate.lifecycle if delegate else Lifecycle()
        self.hooks: Hooks = delegate.hooks if delegate else Hooks()
        self.requests: WaitGroup = delegate.requests if delegate else WaitGroup()
        self.watches: set[Any] = delegate.watches if delegate else set()
        self.healthz: HealthChecks = delegate.healthz if delegate else HealthChecks("/healthz")
        self.livez: HealthChecks = delegate.livez if delegate else HealthChecks("/livez")
        self.readyz: HealthChecks = delegate.readyz if delegate else HealthChecks("/readyz")
        self._all_group_versions: set[tuple[str, str]] = set()
        self._http: HttpServer | None = None
        self._handler: HttpHandler | None = None
        if delegate is None:
            for checks in (self.healthz, self.livez, self.readyz):
                checks.add(PING, HealthCheck("log", lambda: None))

    # What it serves

    def install(
        self, resources: Iterable[Resource[Any]], storages: Callable[[Resource[Any]], Any], services: Any,
        scheme: Scheme, serves: Callable[[str, str, str], bool] = lambda group, version, plural: True,
    ) -> None:  # fmt: skip
        """Serves these resources from their storages, in the versions for which `serves` says so."""
        config = self.config
        shared = Shared(
            admission=config.admission, authorizer=config.authorizer, metrics=config.metrics,
            executor=config.executor, slow_lane=config.slow_lane, services=services, scheme=scheme,
            min_request_timeout=config.min_request_timeout, max_body_bytes=config.max_body_bytes,
            stopping=lambda: self.lifecycle.shutting_down, watches=self.watches,
        )  # fmt: skip
        found = [each for each in served(resources) if serves(each.group, each.version, each.resource.plural)]
        self.routes |= install(found, storages, shared)
        self.served += found
        self.group_versions |= {(each.group, each.version) for each in found}

    def add_path(self, path: str, handler: PathHandler) -> None:
        """Answers exactly this path. Raises ValueError if it is taken."""
        if path in self.paths:
            raise ValueError(f"path {path} is taken")
        self.paths[path] = handler

    def add_prefix(self, prefix: str, handler: PathHandler) -> None:
        """Answers this path and everything below it that has no path of its own."""
        self.prefixes[prefix] = handler

    def add_post_start_hook(self, name: str, hook: Hook) -> None:
        """Work to be done once the server listens; it is ready when all of it is done."""
        check = self.hooks.add_post_start(name, hook)
        self.add_checks(check)

    def add_pre_shutdown_hook(self, name: str, hook: Hook) -> None:
        """Work to be done when the end begins, before requests are drained."""
        self.hooks.add_pre_shutdown(name, hook)

    def add_checks(self, *checks: HealthCheck, only_ready: bool = False) -> None:
        """Adds checks to all three health paths, or to readyz alone."""
        self.readyz.add(*checks)
        if not only_ready:
            self.healthz.add(*checks)
            self.livez.add(*checks)

    def all_paths(self) -> list[str]:
        """Every path the chain answers, for the index."""
        own = {*self.paths, *(prefix.rstrip("/") for prefix in self.prefixes)}
        if self.delegate is not None:
            own |= set(self.delegate.all_paths())
        return sorted(own)

    def all_served(self) -> list[ServedResource]:
        """The resources of the whole chain."""
        return self.served + (self.delegate.all_served() if self.delegate is not None else [])

    # Requests

    async def handle(self, request: Request) -> Response:
        """The director: answers what is this server's own, hands on the rest."""
        info = request.info
        if info.resource_request and (info.group, info.version) in self.group_versions:
            return await self._handle_resource(request)
        path = info.path
        handler = self.paths.get(path)
        if handler is None and len(path) > 1 and path.endswith("/"):
            handler = self.paths.get(path[:-1]) if path[:-1] in self._slashed else None
        if handler is None:
            for prefix, each in self.prefixes.items():
                if path.startswith(prefix):
                    handler = each
                    break
        if handler is not None:
            return await handler(request)
        if self.delegate is not None:
            return await self.delegate.handle(request)
        return self._unknown(request)

    @property
    def _slashed(self) -> frozenset[str]:
        """Paths that may end in a slash, as go-restful's roots may."""
        return frozenset(path for path in self.paths if path.startswith(("/api", "/version")))

    def _unknown(self, request: Request) -> Response:
        """404, as text or, below a group there is, as a Status."""
        parts = request.info.path.strip("/").split("/")
        known = parts[0] == "api" and len(parts) > 1
        if parts[0] == "apis" and len(parts) > 2:
            known = any(group == parts[1] for group, _ in self.all_group_versions())
        if known and not request.path.startswith("//"):
            return error_response(request, unknown_resource())
        return not_found_text()

    def all_group_versions(self) -> set[tuple[str, str]]:
        """Those of the whole chain, once the outermost server has prepared to run."""
        return self._all_group_versions

    async def _handle_resource(self, request: Request) -> Response:
        info = request.info
        route = self.routes.get((info.group, info.version, info.resource, info.subresource))
        if route is None and info.subresource:
            parent = self.routes.get((info.group, info.version, info.resource, info.subresource.partition("/")[0]))
            route = parent if parent is not None and parent.more_path else None
        if route is None:
            return error_response(request, unknown_resource())
        return await instrumented(self.config, route, request)

    # Running

    def prepare_run(self) -> None:
        """Puts the filters around the chain; everything that is served must have been installed."""
        everything: set[tuple[str, str]] = set()
        server: Server | None = self
        while server is not None:
            everything |= server.group_versions
            server = server.delegate
        server = self
        while server is not None:
            server._all_group_versions = everything
            server = server.delegate
        handle = chain(filters(self.config, self.lifecycle, self.requests), self.handle)
        self._handler = _front(handle)
        self.readyz.add(HealthCheck("shutdown", lambda: "shutting down" if self.lifecycle.shutting_down else None))

    @property
    def handler(self) -> HttpHandler:
        """The whole server as a handler of HTTP requests, e.g. for the in-process transport."""
        if self._handler is None:
            raise RuntimeError("prepare_run() comes first")
        return self._handler

    async def start(self) -> tuple[str, int]:
        """Listens; where. Raises OSError."""
        config = self.config
        self._http = HttpServer(self.handler, limits=config.limits, tls=config.tls)
        address = await self._http.start(config.bind_address, config.port)
        self.lifecycle.serving = True
        return address

    async def run_post_start_hooks(self) -> None:
        """Does what is to be done at start."""
        self.lifecycle.serving = True
        await self.hooks.run_post_start()

    async def stop(self) -> None:
        """The orderly end: readyz fails, hooks, no new requests, drain, close watches, close connections."""
        lifecycle, config = self.lifecycle, self.config
        lifecycle.shutting_down = True
        await self.hooks.run_pre_shutdown()
        if config.shutdown_delay:
            await asyncio.sleep(config.shutdown_delay)
        lifecycle.not_accepting = True
        for watch in list(self.watches):
            watch.finish()
        try:
            async with asyncio.timeout(config.shutdown_timeout):
                await self.requests.close()
        except TimeoutError:
            logger.warning("requests were still running after %g s", config.shutdown_timeout)
        if self._http is not None:
            await self._http.drain(config.shutdown_timeout)
            self._http = None

    async def abort(self) -> None:
        """The end at once."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    @property
    def http(self) -> HttpServer | None:
        """The listener while it runs, for its statistics."""
        return self._http


def _front(handle: Handler) -> HttpHandler:
    async def front(http: HttpRequest) -> Response:
        request = Request(http, parse_query(http.query))
        try:
            return await handle(request)
        except StatusError as error:
            return error_response(request, error)

    return front
