"""The environment of a standalone server: it has namespaces, and the resources of authentication and authorization."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.admission_plugins.namespaces import NAMESPACE
from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.bearer_token import BearerTokenAuthenticator
from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.authentication.token_file import StaticTokens, TokenFileError
from steersman.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from steersman.authorization.bootstrap_policy import BootstrapPolicy, load_bootstrap_policy
from steersman.controlplane.authorizers import AuthorizerChain
from steersman.controlplane.initial_objects import ensure, reconcile_policy
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.rbac_feed import feed
from steersman.controlplane.stores import Stores
from steersman.library.namespaces import NamespaceDeletion
from steersman.machinery.metrics import Registry
from steersman.registry.authentication.group import AUTHENTICATION
from steersman.registry.authorization.group import AUTHORIZATION
from steersman.registry.core.namespaces import NAMESPACES
from steersman.registry.rbac.group import RBAC
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.server.server import Server

_NAMESPACE: Final = "default"
_ROLES: Final = frozenset(
    {"admin", "cluster-admin", "edit", "view", "system:basic-user", "system:discovery", "system:public-info-viewer"}
)
"""The roles of every cluster that are not for Kubernetes' own components."""


class StandaloneEnvironment:
    """The environment of a standalone server; see ServerEnvironment. Raises OptionsError for an invalid token file."""

    resources: Final[tuple[Resource[Any, Services], ...]] = (
        NAMESPACES,
        *AUTHENTICATION.resources,
        *AUTHORIZATION.resources,
        *RBAC.resources,
    )
    proxy_headers: Final = None

    def __init__(self, options: Options, issued: IssuedTokens) -> None:
        """Create the environment; `issued` are the tokens of the server's own requests."""
        self._deletion: NamespaceDeletion | None = None
        self.rights = AuthorizerChain(options, Registry()).interfaces
        self.tokens: TokenAuthenticator = _tokens(options, issued)
        self.authenticator: Authenticator = UnionAuthenticator(
            [ClientCertificateAuthenticator(), BearerTokenAuthenticator(self.tokens, options.audiences)],
            AnonymousAuthenticator() if options.lets_anonymous_in else None,
        )

    def lifecycle(self, stores: Stores) -> NamespaceLifecycle:
        """Return the admission plugin; see ServerEnvironment."""
        return NamespaceLifecycle(partial(stores.objects("", "namespaces").read_cached, "", reading=NAMESPACE))

    def install(self, server: Server, stores: Stores) -> None:
        """Follow the roles, and add hooks for initial objects and the deletion of namespaces; see ServerEnvironment."""
        feed(self.rights.roles, stores.store)
        deletion = self._deletion = NamespaceDeletion(stores)

        async def make_roles() -> None:
            await reconcile_policy(stores.objects, _policy())

        async def make_namespace() -> None:
            await ensure(stores.objects("", "namespaces"), Namespace(metadata=ObjectMeta(name=_NAMESPACE)))

        async def delete_namespaces() -> None:
            deletion.start()

        server.add_post_start_hook("rbac/bootstrap-roles", make_roles)
        server.add_post_start_hook("default-namespace", make_namespace)
        server.add_post_start_hook("namespace-deletion", delete_namespaces)

    async def stop(self) -> None:
        """Stop the deletion of namespaces; see ServerEnvironment."""
        if self._deletion is not None:
            await self._deletion.stop()


def _policy() -> BootstrapPolicy:
    policy = load_bootstrap_policy()
    return BootstrapPolicy(
        cluster_roles=tuple(each for each in policy.cluster_roles if each.metadata.name in _ROLES),
        cluster_role_bindings=tuple(each for each in policy.cluster_role_bindings if each.metadata.name in _ROLES),
        roles=(),
        role_bindings=(),
    )


def _tokens(options: Options, issued: IssuedTokens) -> TokenAuthenticator:
    if not options.token_auth_file:
        return issued
    try:
        return UnionTokenAuthenticator([issued, StaticTokens.load(options.token_auth_file, options.audiences)])
    except TokenFileError as error:
        raise OptionsError(f"token_auth_file: {error}") from None
    except OSError as error:
        raise OptionsError(f"token_auth_file: {options.token_auth_file} cannot be read: {error.strerror}") from None
