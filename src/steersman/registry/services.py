"""What a resource may use of the rest of the server; the composition root makes one for all resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Final, TypeVar

from steersman.authentication.interface import TokenIdentity
from steersman.authorization.interface import Authorizer, RuleResolver
from steersman.authorization.rbac import RbacAuthorizer
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.net.client.egress import USUAL, Egress
from steersman.net.client.own_server import ThisServer
from steersman.registry.kubelet import KubeletConnection, ProxyConnection
from steersman.rest.objects import Objects
from steersman.storage.interface import Storage

T = TypeVar("T")

EXTENDED_SECONDS: Final = 365 * 24 * 3600
"""Of the life of tokens in pods, where it is extended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """See the fields. `objects` raises KeyError for a resource that is not served."""

    objects: Callable[[str, str], Objects]
    """(group, plural) -> its objects."""
    storage_of: Callable[[GroupResource], Storage]
    """Where the values of a resource are stored, and what is stored beside its objects."""
    authorizer: Authorizer
    rule_resolver: RuleResolver
    """Lists what a user may do (for SelfSubjectRulesReview)."""
    roles: RbacAuthorizer = field(default_factory=RbacAuthorizer)
    """The stored roles and bindings, also where RBAC judges no requests."""
    service_cluster_ip_ranges: tuple[IPv4Network | IPv6Network, ...]
    service_node_ports: range
    allow_privileged: bool
    service_account_issuer: str
    api_audiences: tuple[str, ...]
    sign_token: Callable[[dict[str, Any]], str | Awaitable[str]]
    """Claims -> a signed service-account token."""
    max_token_expiration: int = 0
    """Seconds; a token for longer is shortened to this. 0 is no limit."""
    extend_token_expiration: bool = True
    """Whether the tokens that pods get from admission live for a year..."""
    max_extended_token_expiration: int = EXTENDED_SECONDS
    """...or so many seconds."""
    event_ttl: int
    """Seconds."""
    authenticate_token: Callable[[str, tuple[str, ...]], TokenIdentity | Awaitable[TokenIdentity | None] | None]
    """Whose a bearer token is that is meant for one of the audiences; see TokenAuthenticator."""
    kubelet: KubeletConnection = field(default_factory=KubeletConnection)
    itself: ThisServer | None = None
    """How webhooks are asked that this server answers."""
    egress: Egress = USUAL
    """How requests to webhooks leave."""
    proxied: ProxyConnection = field(default_factory=ProxyConnection)
    """What requests to pods and services are sent with."""
    enable_aggregator_routing: bool = False
    """Whether webhooks with a Service are asked at its endpoints only, never at the cluster's address for it."""
    resource_of: Callable[[GroupVersionKind], str | None] = field(default=lambda kind: None)
    """The plural of the resource whose objects are of a kind, None if none is served."""
