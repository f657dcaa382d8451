"""Authorization of a control plane: the chain of authorizers that flags or a file describe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.authorization.always_deny import AlwaysDenyAuthorizer
from steersman.authorization.interface import Authorizer, RuleResolver
from steersman.authorization.metrics import AuthorizationMetrics, CountingAuthorizer
from steersman.authorization.rbac import RbacAuthorizer
from steersman.authorization.steps import WEBHOOK, Step, Webhook, step_of
from steersman.authorization.system_masters import PrivilegedGroupAuthorizer
from steersman.authorization.union import UnionAuthorizer, UnionRuleResolver
from steersman.controlplane.followed_configuration import FollowedConfiguration, Unusable
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.rbac_feed import feed
from steersman.controlplane.reload_metrics import ReloadMetrics
from steersman.machinery.metrics import Registry
from steersman.machinery.private_files import read_bounded
from steersman.net.client.egress import USUAL, Egress
from steersman.net.log_levels import NOTICE
from steersman.store.store import Store
from steersman.work.offloading import offload_if

if TYPE_CHECKING:  # spares most servers the import: they have no webhook and no graph
    from steersman.api.authorization.v1 import SubjectAccessReviewSpec
    from steersman.authorization.node.graph import Graph
    from steersman.authorization.webhook import WayOfReview
    from steersman.faults.fault_set import FaultSet
    from steersman.webhooks.client import Through, WebhookClient

logger = logging.getLogger(__name__)

_WATCH_SECONDS = 1.0
"""Seconds between checks of the configuration file for changes."""


class _ChainAuthorizer(Authorizer, RuleResolver, Protocol):
    """An authorizer of the chain, which also resolves rules."""


class AuthorizationInterfaces(Struct, frozen=True):
    """The interfaces of authorization.

    `authorizer` decides requests, `rule_resolver` lists the rules of a user, `roles` holds the stored roles and
    bindings, even if RBAC is not in the chain.
    """

    authorizer: Authorizer
    rule_resolver: RuleResolver
    roles: RbacAuthorizer


class AuthorizerChain:
    """Builder of the authorizers of a control plane; replaces them when the configuration changes."""

    def __init__(
        self, options: Options, registry: Registry, egress: Egress = USUAL, faults: FaultSet | None = None
    ) -> None:
        """Build the authorizers; `faults` hit calls of webhooks. Raises OptionsError for files that cannot be used."""
        self._roles = RbacAuthorizer()
        self._options = options
        self._egress = egress
        self._faults = faults
        self._registry = registry
        self._metrics = AuthorizationMetrics(registry)
        self._graph: Graph | None = None
        self._clients: list[WebhookClient] = []
        self._data = b""
        self._steps = self._described()
        self._lasting = {each.type: self._create_lasting(each.type) for each in self._steps if each.type != WEBHOOK}
        """Authorizers by type that stay when the configuration changes."""
        self._following: FollowedConfiguration | None = None
        self._authorizer = UnionAuthorizer(())
        self._rule_resolver = UnionRuleResolver(())
        self.interfaces: Final = AuthorizationInterfaces(self._authorizer, self._rule_resolver, self._roles)
        try:
            self._replace_authorizers(self._steps)
        except ValueError as error:
            raise OptionsError(f"{self._flag}: {error}") from None

    def feed(self, stores: Callable[[str, str], Store[Any]]) -> None:
        """Fill the authorizers from stored objects, and follow all changes."""
        feed(self._roles, stores)
        if self._graph is not None:
            from steersman.controlplane.node_feed import feed_graph

            feed_graph(self._graph, stores, self._registry)

    def follow(self, server_id: str) -> None:
        """Follow changes of the configuration file."""
        if self._options.authorization_config:
            self._following = FollowedConfiguration(
                "authorization configuration",
                Path(self._options.authorization_config),
                self._data,
                read=_read,
                take=self._reload,
                metrics=ReloadMetrics(self._registry, "authorization", server_id, self._data),
                interval=_WATCH_SECONDS,
            )
            self._following.start()

    async def stop(self) -> None:
        """Stop following the file and close the webhooks' connections."""
        if self._following is not None:
            await self._following.stop()
        for client in self._clients:
            client.close()

    @property
    def _flag(self) -> str:
        return "--authorization-config" if self._options.authorization_config else "--authorization-webhook-config-file"

    # Description

    def _described(self) -> tuple[Step, ...]:
        options = self._options
        if options.authorization_config:
            from steersman.authorization.configuration import ConfigurationError, read_configuration

            try:
                self._data = read_bounded(Path(options.authorization_config))
                return read_configuration(self._data)
            except (OSError, ConfigurationError) as error:
                raise OptionsError(f"--authorization-config: {error}") from None
        return tuple(
            Step(WEBHOOK, "default", _webhook(options)) if mode == WEBHOOK else step_of(mode)
            for mode in options.authorization_mode
        )

    async def _reload(self, data: bytes) -> bool:
        """Apply a changed file; return False if its meaning is the same. Raises Unusable."""
        from steersman.authorization.configuration import read_configuration

        logger.log(NOTICE, "found new authorization config data")
        try:
            steps = await offload_if(True, read_configuration, data, self._lasting)
            if steps == self._steps:
                return False
            self._replace_authorizers(steps)
        except ValueError as error:
            raise Unusable(f"reloading authorization config: {error}") from None
        logger.log(NOTICE, "reloaded authz config")
        return True

    # Construction

    def _replace_authorizers(self, steps: Sequence[Step]) -> None:
        """Put new authorizers in place. Raises ValueError and then changes nothing."""
        clients: list[WebhookClient] = []
        made = [(step, self._create(step, clients)) for step in steps]
        counted = (CountingAuthorizer(judge, self._metrics.tally(step.type, step.name)) for step, judge in made)
        self._authorizer.put((PrivilegedGroupAuthorizer(), *counted))
        self._rule_resolver.put([judge for _, judge in made])
        self._steps = tuple(steps)
        self._clients, before = clients, self._clients
        for client in before:
            client.close()

    def _create(self, step: Step, clients: list[WebhookClient]) -> _ChainAuthorizer:
        if step.webhook is not None:
            return self._create_webhook(step.webhook, step.name, clients)
        judge = self._lasting.get(step.type)
        if judge is None:
            if step.type in ("Node", "RBAC", "ABAC"):
                raise ValueError(
                    f"authorizer type {step.type} is not allowed if it was not enabled at initial server startup"
                )
            judge = self._create_lasting(step.type)
        return judge

    def _create_lasting(self, type: str) -> _ChainAuthorizer:
        """Return the authorizer of a type. Raises OptionsError."""
        if type == "RBAC":
            return self._roles
        if type == "Node":
            return self._create_node_authorizer()
        if type == "ABAC":
            return _create_abac(self._options.authorization_policy_file)
        return AlwaysAllowAuthorizer() if type == "AlwaysAllow" else AlwaysDenyAuthorizer()

    def _create_node_authorizer(self) -> _ChainAuthorizer:
        from steersman.authorization.bootstrap_policy import load_bootstrap_policy
        from steersman.authorization.node.authorizer import NodeAuthorizer
        from steersman.authorization.node.graph import Graph

        self._graph = Graph()
        roles = load_bootstrap_policy().cluster_roles
        rules = next(each.rules for each in roles if each.metadata.name == "system:node")
        return NodeAuthorizer(self._graph, rules or ())

    def _create_webhook(self, webhook: Webhook, name: str, clients: list[WebhookClient]) -> _ChainAuthorizer:
        from steersman.authorization.access_review import AccessReviewAuthorizer
        from steersman.authorization.interface import Decision
        from steersman.authorization.webhook import BACKOFF, USER_AGENT, WebhookReviews, counted_match
        from steersman.webhooks.client import WebhookClient
        from steersman.webhooks.kubeconfig import load_kubeconfig

        endpoint = replace(load_kubeconfig(Path(webhook.kubeconfig)), leave=self._egress.control_plane)
        client = WebhookClient(endpoint, BACKOFF, user_agent=USER_AGENT, timeout=webhook.timeout)
        clients.append(client)
        metrics = self._metrics.webhooks
        match = None
        if webhook.conditions:
            from steersman.authorization.match_conditions import MatchConditions

            match = counted_match(MatchConditions(webhook.conditions), name, metrics)
        fails_open = webhook.on_error is Decision.NO_OPINION
        way = None if self._faults is None else _faulty_ways(self._faults, name)
        return AccessReviewAuthorizer(
            WebhookReviews(client, webhook.version, name, metrics, fails_open=fails_open, way=way),
            allow_seconds=webhook.authorized_ttl,
            deny_seconds=webhook.unauthorized_ttl,
            on_error=webhook.on_error,
            match=match,
        )


def _faulty_ways(faults: FaultSet, name: str) -> WayOfReview:
    """Return the function that chooses the fault of a review by the webhook `name`; none hits requests for Faults."""
    from steersman.faults.fault import Call
    from steersman.faults.fault_set import RESOURCE
    from steersman.faults.faulty_sender import faulty_way

    def way(spec: SubjectAccessReviewSpec) -> Through | None:
        asked = spec.resource_attributes
        if asked is not None and (asked.group, asked.resource) == RESOURCE:
            return None
        return faulty_way(faults, Call("authorization_webhooks", (name,)))

    return way


def _webhook(options: Options) -> Webhook:
    """Return the webhook that flags describe."""
    return Webhook(
        kubeconfig=options.authorization_webhook_config_file,
        version=options.authorization_webhook_version,
        authorized_ttl=options.authorization_webhook_cache_authorized_ttl,
        unauthorized_ttl=options.authorization_webhook_cache_unauthorized_ttl,
    )


def _create_abac(file: str) -> _ChainAuthorizer:
    from steersman.authorization.abac import AbacAuthorizer
    from steersman.authorization.abac_file import PolicyFileError, read_policies

    try:
        return AbacAuthorizer(read_policies(Path(file)))
    except PolicyFileError as error:
        raise OptionsError(f"--authorization-policy-file: {error}") from None


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path)
    except OSError as error:
        raise Unusable(f"reloading authorization config: {error}") from None
