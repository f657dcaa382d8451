"""Number of pods that the owners of pods request, for owners of any kind."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from steersman.api.apps.v1 import Deployment, ReplicaSet, StatefulSet
from steersman.api.core.v1 import ReplicationController
from steersman.api.meta.v1 import OwnerReference
from steersman.client.api_resource import APIResource
from steersman.client.client import Client, decoded
from steersman.client.discovery import resources_of
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import Informer, Informers
from steersman.client.resources import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SCALES,
    STATEFUL_SETS,
)
from steersman.controllers.workloads.controller_ref import controller_of, resolve
from steersman.machinery.errors.status import StatusError
from steersman.work import simulated_time
from steersman.work.bounded_cache import BoundedCache
from steersman.work.work_queue import TryLater

_KNOWN_FOR: Final = 30.0
"""Seconds for which the discovery of a group version is cached."""
_MOST_KNOWN: Final = 100
_APPS: Final = ("apps", "extensions")
_SCALES: Final = (("autoscaling", "v1"), ("extensions", "v1beta1"), ("apps", "v1beta1"), ("apps", "v1beta2"))

Scale = tuple[str, int]
"""The uid of an owner, and the number of pods that it requests."""
_Workload = Deployment | ReplicaSet | StatefulSet | ReplicationController


class _Discovery(Struct, frozen=True):
    """Discovery of a group version: resources by kind, and resources with a scale subresource."""

    at: float
    plurals: dict[str, str]
    scalable: frozenset[str]


class Scales:
    """Finds scales: of built-in workloads by informers, of other kinds by requests for their scale subresource."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._replication_controllers = informers.for_resource(REPLICATION_CONTROLLERS)
        self._replica_sets = informers.for_resource(REPLICA_SETS)
        self._deployments = informers.for_resource(DEPLOYMENTS)
        self._stateful_sets = informers.for_resource(STATEFUL_SETS)
        self._served: BoundedCache[str, _Discovery] = BoundedCache(_MOST_KNOWN)

    async def get(self, owner: OwnerReference, namespace: str) -> Scale | None:
        """Return the scale of a pod's controller, or of the Deployment above it; None if it is gone.

        Raises StatusError, Unreachable, and TryLater if the kind has no scale.
        """
        group = owner.api_version.partition("/")[0] if "/" in owner.api_version else ""
        workload: _Workload | None = None
        if owner.kind == "ReplicationController" and not group:
            workload = resolve(self._replication_controllers, namespace, owner)
        elif owner.kind == "ReplicaSet" and group in _APPS:
            workload = self._of_replica_set(resolve(self._replica_sets, namespace, owner))
        elif owner.kind == "StatefulSet" and group == "apps":
            workload = resolve(self._stateful_sets, namespace, owner)
        if workload is not None:
            return _scale(workload)
        return await self._request_scale(owner, group, namespace)

    def _of_replica_set(self, found: ReplicaSet | None) -> ReplicaSet | Deployment | None:
        """Return a ReplicaSet, or the Deployment that controls it."""
        reference = controller_of(found) if found is not None else None
        if found is None or reference is None or reference.kind != "Deployment":
            return found
        informer: Informer[Deployment] = self._deployments
        return resolve(informer, found.metadata.namespace, reference)

    async def _request_scale(self, owner: OwnerReference, group: str, namespace: str) -> Scale | None:
        served = await self._discover(owner.api_version)
        plural = served.plurals.get(owner.kind) if served is not None else None
        if served is None or plural is None:
            raise TryLater(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')
        version = owner.api_version.rpartition("/")[2]
        resource: APIResource[Any] = APIResource(group, version, plural, owner.kind, dict)
        try:
            found = await self._client.request("GET", resource.path(namespace, owner.name, "scale"))
        except StatusError as error:
            if not is_not_found(error):
                raise
            if plural not in served.scalable:
                name = f"{plural}.{group}" if group else plural
                raise TryLater(f"{name} does not implement the scale subresource") from None
            return None
        scale = await decoded(SCALES.decode, found)
        return (owner.uid, scale.spec.replicas) if scale.metadata.uid == owner.uid else None

    async def _discover(self, api_version: str) -> _Discovery | None:
        """Return the discovery of a group version, cached for a short time; None if it is not served."""
        now = simulated_time.time()
        cached = self._served[api_version]
        if cached is not None and now - cached.at < _KNOWN_FOR:
            return cached
        resources = None
        with ignoring(is_not_found):
            resources = await resources_of(self._client, api_version)
        if resources is None:
            return None
        plurals = {each.kind: each.name for each in resources if "/" not in each.name}
        scalable = frozenset(
            each.name.removesuffix("/scale")
            for each in resources
            if each.name.endswith("/scale") and each.kind == "Scale" and (each.group, each.version) in _SCALES
        )
        discovery = _Discovery(now, plurals, scalable)
        self._served.keep(api_version, discovery)
        return discovery


def _scale(found: _Workload) -> Scale:
    replicas = found.spec.replicas
    return found.metadata.uid, 1 if replicas is None else replicas
