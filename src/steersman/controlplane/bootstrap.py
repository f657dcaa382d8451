"""Objects that a fresh server creates and every start completes, as post-start hooks.

Objects that may be deleted while the server runs are created again: by `upkeep`, or as soon as they are gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from steersman.api.apiregistration.v1 import APIService, APIServiceSpec
from steersman.api.core.v1 import (
    ConfigMap,
    Namespace,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.networking.v1 import ServiceCIDR, ServiceCIDRSpec
from steersman.api.scheduling.v1 import PriorityClass
from steersman.apiextensions.api_services import AUTOMANAGED
from steersman.authorization.bootstrap_policy import load_bootstrap_policy
from steersman.controlplane.authentication_info import combined
from steersman.controlplane.flow_control_configuration import HOOK, FlowControlConfiguration
from steersman.controlplane.group_versions import GROUP_VERSIONS, GroupVersionPriority
from steersman.controlplane.initial_objects import ObjectsOf, all_of, ensure, reconcile_policy, remove
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.values import times
from steersman.rest.context import loopback
from steersman.rest.objects import Reading
from steersman.server.health import HealthCheck
from steersman.server.server import Server

logger = logging.getLogger(__name__)

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
AUTHENTICATION_INFO: Final = ("kube-system", "extension-apiserver-authentication")
"""Namespace and name of the ConfigMap by which aggregated servers can trust this one."""
_AUTOMANAGED: Final = {AUTOMANAGED: "onstart"}

_MADE_AT_START: Final[Reading[str]] = Reading(
    lambda each: each.metadata.name if _AUTOMANAGED.items() <= each.metadata.labels.items() else "",
    "metadata.name",
    "metadata.labels",
)
"""The name of an APIService that is created at every start, "" for another."""


class Bootstrap:
    """Post-start hooks of `server`, whose catalogue holds the served resources. `service_range` is the range of Service
    IPs.
    """

    def __init__(
        self,
        server: Server,
        objects: ObjectsOf,
        *,
        service_range: IPv4Network | IPv6Network,
        authentication_info: Callable[[], Mapping[str, str]],
    ) -> None:
        self._server = server
        self._objects = objects
        served = {(each.group, each.version) for each in server.catalogue.served()}
        self._api_service_versions = [
            each
            for each in GROUP_VERSIONS
            if each.group != "apiregistration.k8s.io" and (each.group, each.version) in served
        ]
        self._service_range = service_range
        self._authentication_info = authentication_info
        self._registered = False
        self.flow_control = FlowControlConfiguration(objects).ensure
        """Create and correct the flow schemas and priority levels of every cluster."""

    def install(self) -> None:
        """Add the hooks, under upstream's names."""
        server = self._server
        server.add_post_start_hook("start-system-namespaces-controller", self.namespaces)
        server.add_post_start_hook("rbac/bootstrap-roles", self.roles)
        server.add_post_start_hook("scheduling/bootstrap-system-priority-classes", self.priority_classes)
        server.add_post_start_hook(HOOK, self.flow_control)
        server.add_post_start_hook("start-cluster-authentication-info-controller", self.authentication_configmap)
        server.add_post_start_hook("start-kubernetes-service-cidr-controller", self.service_cidr)

    def install_registration(self) -> None:
        """Add the hook and the health check of APIServices, which come after the aggregator's."""
        server = self._server
        server.add_post_start_hook("kube-apiserver-autoregistration", self.api_services)
        server.add_checks(HealthCheck("autoregister-completion", self.unregistered))

    async def namespaces(self) -> None:
        """Create the namespaces of every cluster."""
        objects = self._objects("", "namespaces")
        await all_of(ensure(objects, Namespace(metadata=ObjectMeta(name=name))) for name in SYSTEM_NAMESPACES)

    async def priority_classes(self) -> None:
        """Create the two system priority classes."""
        objects = self._objects("scheduling.k8s.io", "priorityclasses")
        critical = "Used for system critical pods that must "
        classes = (
            PriorityClass(
                metadata=ObjectMeta(name="system-node-critical"),
                value=2000001000,
                description=critical + "not be moved from their current node.",
                preemption_policy="PreemptLowerPriority",
            ),
            PriorityClass(
                metadata=ObjectMeta(name="system-cluster-critical"),
                value=2000000000,
                description=critical + "run in the cluster, but can be moved to another node if necessary.",
                preemption_policy="PreemptLowerPriority",
            ),
        )
        await all_of(ensure(objects, each) for each in classes)

    async def roles(self) -> None:
        """Create the default roles and bindings; existing ones keep their additions."""
        policy = load_bootstrap_policy()
        await reconcile_policy(self._objects, policy)

    async def authentication_configmap(self) -> None:
        """Write the ConfigMap by which aggregated servers can trust this one (AUTHENTICATION_INFO)."""
        namespace, name = AUTHENTICATION_INFO
        objects = self._objects("", "configmaps")
        ours = self._authentication_info()
        there = await objects.get_cached(namespace, name)
        try:
            data = combined({} if there is None else there.data, ours)
        except ValueError as error:
            logger.error("updating the ConfigMap %s/%s failed, as its data is malformed: %s", namespace, name, error)
            return
        if there is not None and there.data == data:
            return
        if await ensure(objects, ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)):
            return

        def change(old: ConfigMap) -> ConfigMap:
            old.data = combined(old.data, ours)  # another server may have added its data meanwhile
            return old

        await objects.update(loopback(namespace, name), name, change)

    async def service_cidr(self) -> None:
        """Create the default ServiceCIDR."""
        objects = self._objects("networking.k8s.io", "servicecidrs")
        name = "kubernetes"
        spec = ServiceCIDRSpec(cidrs=[str(self._service_range)])
        if await ensure(objects, ServiceCIDR(metadata=ObjectMeta(name=name), spec=spec)):
            ready = {
                "type": "Ready",
                "status": "True",
                "lastTransitionTime": times.now(),
                "message": "Kubernetes default Service CIDR is ready",
            }
            applied = {
                "kind": "ServiceCIDR",
                "apiVersion": "networking.k8s.io/v1",
                "metadata": {"name": name},
                "status": {"conditions": [ready]},
            }
            await objects.apply(
                loopback(name=name), name, applied, "kubernetes-service-cidr-controller", subresource="status"
            )

    async def api_services(self) -> None:
        """Create an APIService for every group version of this server, and delete those of versions no longer
        served.
        """
        objects = self._objects("apiregistration.k8s.io", "apiservices")
        names = {_api_service_name(each) for each in self._api_service_versions}
        left = [name for name in await objects.read_all("", _MADE_AT_START) if name]
        await all_of(
            [
                *(self._api_service(objects, each) for each in self._api_service_versions),
                *(remove(objects, name) for name in left if name not in names),
            ]
        )
        self._registered = True

    def unregistered(self) -> str | None:
        """Return a text about the APIServices that are still missing, None if there are none."""
        if self._registered:
            return None
        objects = self._objects("apiregistration.k8s.io", "apiservices")
        names = map(_api_service_name, self._api_service_versions)
        missing = [name for name in names if not objects.is_cached("", name)]
        return f"missing APIService: {missing}" if missing else None

    async def _api_service(self, objects: StoreObjects, each: GroupVersionPriority) -> None:
        name = _api_service_name(each)
        spec = APIServiceSpec(
            group=each.group,
            version=each.version,
            group_priority_minimum=each.group_priority,
            version_priority=each.version_priority,
        )
        metadata = ObjectMeta(name=name, labels=dict(_AUTOMANAGED))
        await ensure(objects, APIService(metadata=metadata, spec=spec))


def _api_service_name(each: GroupVersionPriority) -> str:
    return f"{each.version}.{each.group}"
