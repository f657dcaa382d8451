"""What a resource may use of the rest of the server; the composition root makes one for all resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Protocol, TypeVar

from steersman.api.meta.v1 import DeleteOptions
from steersman.authorization.interface import Authorizer, RuleResolver
from steersman.rest.context import Context

T = TypeVar("T")


class Objects(Protocol):
    """Typed access to the objects of one resource, from inside the server. The context gives the namespace.

    Objects are decoded anew for each caller, who may change what it gets.
    """

    async def get(self, ctx: Context, name: str) -> Any:
        """Raises StatusError NotFound."""
        ...

    def find(self, namespace: str, name: str) -> Any | None:
        """The object in the cache, None if there is none. `namespace` is "" for cluster-scoped ones."""
        ...

    def list(self, namespace: str = "") -> Iterable[Any]:
        """Every object of a namespace, or of all."""
        ...

    async def create(self, ctx: Context, obj: Any) -> Any:
        """Creates with the resource's strategy; `ctx.dry_run` is honoured. Raises StatusError."""
        ...

    async def update(
        self, ctx: Context, name: str, change: Callable[[Any], Any], *,
        subresource: str = "", strategy: Any = None, owned: bool = True,
    ) -> Any:  # fmt: skip
        """Replaces the object by `change(current)` under the (sub)resource's strategy, or the given one, trying again
        when another write came first. `change` may change in place and return the object. With `owned` the server
        becomes the owner of what it changes; without, who owns what stays. Raises StatusError, also whatever `change`
        raises."""
        ...

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        """Deletes as the DELETE verb does. Raises StatusError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """See the fields. `objects` raises KeyError for a resource that is not served."""

    objects: Callable[[str, str], Objects]
    """(group, plural) -> its objects."""
    authorizer: Authorizer
    rule_resolver: RuleResolver
    """Lists what a user may do (for SelfSubjectRulesReview)."""
    service_cluster_ip_ranges: tuple[IPv4Network | IPv6Network, ...]
    service_node_ports: range
    allow_privileged: bool
    service_account_issuer: str
    api_audiences: tuple[str, ...]
    sign_token: Callable[[dict[str, Any]], str]
    """Claims -> a signed service-account token."""
    max_token_expiration: int = 0
    """Seconds; a token for longer is shortened to this. 0 is no limit."""
    extend_token_expiration: bool = True
    """Whether the tokens that pods get from admission live for a year."""
    event_ttl: int
    """Seconds."""
    authenticate_token: Callable[[str, tuple[str, ...]], Any]
    """A bearer token and audiences -> TokenIdentity or None (or an awaitable of it); raises AuthenticationError."""
