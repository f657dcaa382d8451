"""The environment of a server behind a Kubernetes cluster, which authenticates and authorizes users and has the
namespaces.

Cache lifetimes are those of k8s.io/apiserver's DelegatingAuthenticationOptions and DelegatingAuthorizationOptions.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from steersman.api.authentication.v1 import TokenReview
from steersman.api.authorization.v1 import SubjectAccessReview
from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.bearer_token import BearerTokenAuthenticator
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.authentication.token_cache import CachedTokenAuthenticator
from steersman.authentication.token_review import ReviewedTokens
from steersman.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from steersman.authentication.user import UserInfo
from steersman.authorization.access_review import AccessReviewAuthorizer
from steersman.authorization.always_allow_paths import AlwaysAllowPathsAuthorizer
from steersman.authorization.interface import ResolvedRules
from steersman.authorization.rbac import RbacAuthorizer
from steersman.authorization.system_masters import PrivilegedGroupAuthorizer
from steersman.authorization.union import UnionAuthorizer
from steersman.client.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from steersman.controlplane.authorizers import AuthorizationInterfaces
from steersman.controlplane.stores import Stores
from steersman.library.aggregated.cluster import Cluster
from steersman.library.aggregated.namespaces import ClusterNamespaceLifecycle, ClusterNamespaces
from steersman.library.aggregated.trust import NAME, NAMESPACE, ClusterTrust
from steersman.library.aggregation import ClusterError
from steersman.machinery.errors.status import StatusError
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.server.server import Server

_TOKEN_SECONDS: Final = 10.0
_ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")


class _NoRules:
    """The rule resolver of a server without rules, as the cluster has them."""

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return no rules, marked as incomplete; see RuleResolver."""
        return ResolvedRules(incomplete=True)


class AggregatedEnvironment:
    """The environment of an aggregated server; call `start` first. See ServerEnvironment."""

    resources: Final[tuple[Resource[Any, Services], ...]] = ()

    def __init__(self, cluster: Cluster, bundle: Path, own: bytes, issued: IssuedTokens) -> None:
        """Create the environment.

        For `bundle` and `own` see ClusterTrust; `issued` are the tokens of the server's own requests.
        """
        self._cluster = cluster
        self._namespaces = ClusterNamespaces(cluster)
        self.trust = ClusterTrust(cluster, bundle, own)
        self.proxy_headers = self.trust.proxies
        reviewed = CachedTokenAuthenticator(
            ReviewedTokens(self._token_review), seconds=_TOKEN_SECONDS, unknown_seconds=_TOKEN_SECONDS
        )
        self.tokens: TokenAuthenticator = UnionTokenAuthenticator([issued, reviewed])
        self.authenticator: Authenticator = UnionAuthenticator(
            [self.trust.proxies, self.trust.certificates, BearerTokenAuthenticator(self.tokens, ())],
            AnonymousAuthenticator(),
        )
        authorizer = UnionAuthorizer(
            (
                PrivilegedGroupAuthorizer(),
                AlwaysAllowPathsAuthorizer(_ALWAYS_ALLOWED),
                AccessReviewAuthorizer(self._access_review),
            )
        )
        self.rights = AuthorizationInterfaces(authorizer, _NoRules(), RbacAuthorizer())

    async def start(self) -> None:
        """Return once the trust configuration and the namespaces are known. Raises ClusterError, OSError."""
        try:
            await self.trust.start()
        except StatusError as error:
            raise ClusterError(
                f"unable to get configmap/{NAME} in {NAMESPACE} of {self._cluster.shown}: {error}. Usually "
                f"fixed by 'kubectl create rolebinding -n {NAMESPACE} ROLEBINDING_NAME --role={NAME}-reader "
                "--serviceaccount=YOUR_NS:YOUR_SA'"
            ) from None
        try:
            await self._namespaces.start()
        except StatusError as error:
            raise ClusterError(
                f"unable to list the namespaces of {self._cluster.shown}: {error}. The server's user must be "
                "allowed to get, list and watch them"
            ) from None

    def lifecycle(self, stores: Stores) -> ClusterNamespaceLifecycle:
        """Return the admission plugin; see ServerEnvironment."""
        return ClusterNamespaceLifecycle(self._namespaces)

    def install(self, server: Server, stores: Stores) -> None:
        """Refresh TLS when the trusted authorities change; see ServerEnvironment."""
        tls = server.config.tls
        if tls is not None:
            self.trust.changed = lambda: tls.refresh(now=True)

    async def stop(self) -> None:
        """Stop following the cluster and close the connections; see ServerEnvironment."""
        await self.trust.stop()
        await self._namespaces.stop()
        await self._cluster.aclose()

    async def _token_review(self, review: TokenReview) -> TokenReview:
        return await self._cluster.request(partial(self._cluster.client.create, TOKEN_REVIEWS, review))

    async def _access_review(self, review: SubjectAccessReview) -> SubjectAccessReview:
        return await self._cluster.request(partial(self._cluster.client.create, SUBJECT_ACCESS_REVIEWS, review))
