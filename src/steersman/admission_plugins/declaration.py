"""What a built-in plugin says of itself, and what it may use of the server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from steersman.admission.interface import KnownNamespace, Plugin
from steersman.admission_plugins.metrics import ConditionMetrics, PolicyMetrics, WebhookMetrics
from steersman.admission_plugins.namespaces import NAMESPACE
from steersman.authorization.interface import Authorizer
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.machinery.metrics import Registry
from steersman.rest.objects import Objects, Reading

if TYPE_CHECKING:  # a server without webhooks has no clients of them
    from steersman.net.client.egress import Egress
    from steersman.net.client.own_server import ThisServer
    from steersman.webhooks.client_config import LocateService

T = TypeVar("T")
C = TypeVar("C")


class Surroundings(Struct, frozen=True, kw_only=True):
    """What plugins may use of the server; times are in seconds."""

    authorizer: Authorizer
    objects: Callable[[str, str], Objects]
    """(group, plural) -> its objects."""
    mapper: RESTMapper
    locate_service: LocateService
    itself: ThisServer | None
    """How webhooks are asked that this server answers."""
    egress: Egress
    """How requests to webhooks leave."""
    registry: Registry
    """Where a plugin puts metrics of its own."""
    webhook_metrics: WebhookMetrics
    condition_metrics: ConditionMetrics
    policy_metrics: PolicyMetrics
    difference: Callable[[Any, Any], str]
    """Shows how two objects differ, in upstream's internal form."""
    not_ready_toleration: int = 300
    unreachable_toleration: int = 300

    def known(self, plural: str, reading: Reading[T]) -> Callable[[str], T | None]:
        """Gives what is read out of a cluster-scoped object of the core group by its name, None if there is none."""
        objects = self.objects("", plural)
        return lambda name: objects.read_cached("", name, reading)

    @property
    def namespace(self) -> Callable[[str], KnownNamespace | None]:
        """Gives the state of a namespace by its name, None if there is none."""
        return partial(self.objects("", "namespaces").read_cached, "", reading=NAMESPACE)


class Declaration(Struct, frozen=True):
    """A plugin, whether it is on without a flag that says so, and how it is made, if it needs anything."""

    plugin: type[Plugin]
    on_by_default: bool
    make: Callable[[Surroundings], Plugin] | None = None

    @property
    def name(self) -> str:
        """As the command line has it."""
        return self.plugin.name

    def made(self, server: Surroundings) -> Plugin:
        """The plugin of a server."""
        return self.plugin() if self.make is None else self.make(server)


class ConfiguredDeclaration(Struct, Generic[C], frozen=True):
    """The same of a plugin that a `C` of --admission-control-config-file configures."""

    plugin: type[Plugin]
    on_by_default: bool
    make: Callable[[Surroundings, C], Plugin]

    @property
    def name(self) -> str:
        """As the command line has it."""
        return self.plugin.name
