"""The services of a server that its resources use; the composition root makes one `Services` for all resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct, field

from steersman.authentication.interface import TokenIdentity
from steersman.authorization.interface import Authorizer, RuleResolver
from steersman.authorization.rbac import RbacAuthorizer
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.net.client.egress import USUAL, Egress
from steersman.net.client.own_server import ThisServer
from steersman.registry.kubelet import KubeletConnection, ProxyConnection
from steersman.rest.objects import Objects
from steersman.storage.interface import Storage

if TYPE_CHECKING:
    from steersman.faults.fault_set import FaultSet

T = TypeVar("T")

EXTENDED_SECONDS: Final = 365 * 24 * 3600
"""Lifetime of extended tokens of pods, in seconds."""


class Services(Struct, frozen=True, kw_only=True):
    """Services that resources use; see the fields. `objects` raises KeyError for a resource that is not served."""

    objects: Callable[[str, str], Objects]
    """(group, plural) -> access to the objects of the resource."""
    storage_of: Callable[[GroupResource], Storage]
    """Returns the storage that holds the values of a resource, for data that is stored beside its objects."""
    authorizer: Authorizer
    rule_resolver: RuleResolver
    """Lists the rules that apply to a user (for SelfSubjectRulesReview)."""
    roles: RbacAuthorizer = field(default_factory=RbacAuthorizer)
    """The stored roles and bindings, also if RBAC is no authorization mode."""
    service_cluster_ip_ranges: tuple[IPv4Network | IPv6Network, ...]
    service_node_ports: range
    allow_privileged: bool
    service_account_issuer: str
    api_audiences: tuple[str, ...]
    sign_token: Callable[[dict[str, Any]], str | Awaitable[str]]
    """Claims -> a signed service account token."""
    max_token_expiration: int = 0
    """The longest lifetime of a token in seconds, to which longer requests are shortened; 0 for no limit."""
    extend_token_expiration: bool = True
    """True if tokens that admission projects into pods live for `max_extended_token_expiration`."""
    max_extended_token_expiration: int = EXTENDED_SECONDS
    """Seconds; a year by default."""
    event_ttl: int
    """Lifetime of an event in seconds."""
    authenticate_token: Callable[[str, tuple[str, ...]], TokenIdentity | Awaitable[TokenIdentity | None] | None]
    """(token, audiences) -> the identity of a bearer token that is meant for one of the audiences; see
    TokenAuthenticator.
    """
    kubelet: KubeletConnection = field(default_factory=KubeletConnection)
    itself: ThisServer | None = None
    """The client of this server itself, for webhooks that it answers."""
    egress: Egress = USUAL
    """The egress of requests to webhooks."""
    proxied: ProxyConnection = field(default_factory=ProxyConnection)
    """Connections for requests to pods and services."""
    enable_aggregator_routing: bool = False
    """True if webhooks with a Service are called at its endpoints only, never at its cluster IP."""
    faults: FaultSet | None = None
    """Faults of calls of webhooks, if there are any."""
    resource_of: Callable[[GroupVersionKind], str | None] = field(default=lambda kind: None)
    """Returns the plural of the resource that serves a kind, None if there is none."""
