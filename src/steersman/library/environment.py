"""The environment of a library server: authentication, authorization and namespaces, beside its own resources."""

from __future__ import annotations

from typing import Any, Protocol

from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.request_header import HeaderRemover
from steersman.controlplane.authorizers import AuthorizationInterfaces
from steersman.controlplane.stores import Stores
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.server.server import Server


class ServerEnvironment(Protocol):
    """The environment, of a standalone server or of a server behind a cluster."""

    @property
    def resources(self) -> tuple[Resource[Any, Services], ...]:
        """Resources that are served in v1 in addition to the declared ones."""
        ...

    @property
    def authenticator(self) -> Authenticator:
        """The authenticator of requests."""
        ...

    @property
    def tokens(self) -> TokenAuthenticator:
        """The authenticator of bearer tokens."""
        ...

    @property
    def proxy_headers(self) -> HeaderRemover | None:
        """The identity headers of trusted proxies."""
        ...

    @property
    def rights(self) -> AuthorizationInterfaces:
        """The authorizer, rule resolver and roles."""
        ...

    def lifecycle(self, stores: Stores) -> NamespaceLifecycle:
        """Return the admission plugin that checks the namespaces of writes."""
        ...

    def install(self, server: Server, stores: Stores) -> None:
        """Add hooks and checks, once the stores are filled."""
        ...

    async def stop(self) -> None:
        """Stop all parts, after the server has stopped serving."""
        ...
