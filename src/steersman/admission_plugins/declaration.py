"""Declarations of the built-in admission plugins, and the dependencies they are created with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from steersman.admission.interface import NamespaceState, Plugin
from steersman.admission_plugins.metrics import ConditionMetrics, PolicyMetrics, WebhookMetrics
from steersman.admission_plugins.namespaces import NAMESPACE
from steersman.authorization.interface import Authorizer
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.machinery.metrics import Registry
from steersman.rest.objects import Objects, Reading

if TYPE_CHECKING:  # a server without webhooks never imports their client
    from steersman.faults.fault_set import FaultSet
    from steersman.net.client.egress import Egress
    from steersman.net.client.own_server import ThisServer
    from steersman.webhooks.client_config import LocateService

T = TypeVar("T")
C = TypeVar("C")


class PluginDependencies(Struct, frozen=True, kw_only=True):
    """Dependencies of admission plugins: parts of the server and values of its flags. Times are in seconds."""

    authorizer: Authorizer
    objects: Callable[[str, str], Objects]
    """Function (group, plural) -> the objects of a resource."""
    mapper: RESTMapper
    locate_service: LocateService
    itself: ThisServer | None
    """This server, for webhooks that it serves itself."""
    egress: Egress
    """Dialers for the connections to webhooks."""
    registry: Registry
    """Registry for a plugin's own metrics."""
    webhook_metrics: WebhookMetrics
    condition_metrics: ConditionMetrics
    policy_metrics: PolicyMetrics
    difference: Callable[[Any, Any], str]
    """Returns the text of the difference of two objects in upstream's internal form."""
    faults: FaultSet | None = None
    """Faults of calls of webhooks, if there are any."""
    not_ready_toleration: int = 300
    unreachable_toleration: int = 300

    def reader(self, plural: str, reading: Reading[T]) -> Callable[[str], T | None]:
        """Return a function from the name of a cluster-scoped core object to its parsed part, None if it does not
        exist.
        """
        objects = self.objects("", plural)
        return lambda name: objects.read_cached("", name, reading)

    @property
    def namespace(self) -> Callable[[str], NamespaceState | None]:
        """Return a function from the name of a namespace to its state, None if it does not exist."""
        return partial(self.objects("", "namespaces").read_cached, "", reading=NAMESPACE)


class Declaration(Struct, frozen=True):
    """An admission plugin without configuration file; `make` creates it, unless its class needs no arguments."""

    plugin: type[Plugin]
    on_by_default: bool
    make: Callable[[PluginDependencies], Plugin] | None = None

    @property
    def name(self) -> str:
        """Return the plugin's name on the command line."""
        return self.plugin.name

    def create(self, dependencies: PluginDependencies) -> Plugin:
        """Return a new plugin for a server."""
        return self.plugin() if self.make is None else self.make(dependencies)


class ConfiguredDeclaration(Struct, Generic[C], frozen=True):
    """An admission plugin that is configured by a `C` from --admission-control-config-file."""

    plugin: type[Plugin]
    on_by_default: bool
    make: Callable[[PluginDependencies, C], Plugin]

    @property
    def name(self) -> str:
        """Return the plugin's name on the command line."""
        return self.plugin.name
