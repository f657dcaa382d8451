"""The OpenAPI paths of a server. The modules that build documents are imported at the first request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.endpoints.request import Request
from steersman.net.message import Response
from steersman.server.server import Server
from steersman.work.first_use import import_offloaded
from steersman.work.single_flight import Flight

if TYPE_CHECKING:
    from steersman.openapi.remote import RemoteDocuments
    from steersman.openapi.service import OpenAPIService


class LazyOpenAPIService:
    """The handlers of the OpenAPI paths; they delegate to `OpenAPIService`, which is created at the first request."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._remote: RemoteDocuments | None = None
        self._making: Flight[OpenAPIService] | None = None

    def install(self) -> None:
        """Add the paths to the server."""
        self._server.add_path("/openapi/v2", self._answer_v2)
        self._server.add_path("/openapi/v3", self._answer_index)
        self._server.add_prefix("/openapi/v3/", self._answer_v3, listed=True)

    @property
    def remote(self) -> RemoteDocuments:
        """Return the documents of other servers; the aggregator adds to them."""
        if self._remote is None:
            from steersman.openapi.remote import RemoteDocuments

            self._remote = RemoteDocuments()
        return self._remote

    async def service(self) -> OpenAPIService:
        """Return the service; the first call imports and creates it in a worker thread."""
        if self._making is None or self._making.has_failed:
            self._making = Flight(self._make)
        return await self._making

    async def _make(self) -> OpenAPIService:
        module = await import_offloaded("steersman.openapi.service")
        made: OpenAPIService = module.OpenAPIService(self._server, self.remote)
        return made

    async def _answer_v2(self, request: Request) -> Response:
        return await (await self.service()).answer_v2(request)

    async def _answer_index(self, request: Request) -> Response:
        return await (await self.service()).answer_index(request)

    async def _answer_v3(self, request: Request) -> Response:
        return await (await self.service()).answer_v3(request)
