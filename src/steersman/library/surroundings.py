"""What a server has beside its own resources: who its users are, what they may do, and in which namespaces."""

from __future__ import annotations

from typing import Any, Protocol

from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.request_header import Clearing
from steersman.controlplane.authorizers import Judges
from steersman.controlplane.stores import Stores
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.server.server import Server


class Surroundings(Protocol):
    """Its own (standalone), or those of the cluster that it is behind (aggregated)."""

    @property
    def resources(self) -> tuple[Resource[Any, Services], ...]:
        """Served beside one's own, in v1."""
        ...

    @property
    def authenticator(self) -> Authenticator:
        """Tells who sends a request."""
        ...

    @property
    def tokens(self) -> TokenAuthenticator:
        """Tells whose a bearer token is."""
        ...

    @property
    def proxy_headers(self) -> Clearing | None:
        """The headers by which trusted proxies say who sends a request."""
        ...

    @property
    def rights(self) -> Judges:
        """Judges requests."""
        ...

    def lifecycle(self, stores: Stores) -> NamespaceLifecycle:
        """Judges writes by the namespace they are in."""
        ...

    def install(self, server: Server, stores: Stores) -> None:
        """Begins what it needs, on stores that are filled: hooks and checks."""
        ...

    async def stop(self) -> None:
        """Ends what runs, once the server serves nothing any more."""
        ...
