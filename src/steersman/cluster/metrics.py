"""Metrics APIs of a simulated cluster, added to its control plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.api.apiregistration.v1 import APIService, APIServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists
from steersman.client.informer import Informers
from steersman.client.metrics_types import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS
from steersman.client.resources import API_SERVICES
from steersman.controlplane.control_plane import ControlPlane
from steersman.machinery.codec.serializer import encode_in_order
from steersman.nodes.load import Load
from steersman.nodes.usage import Usages
from steersman.simulated_metrics.configured_metrics import CUSTOM_VERSIONS, EXTERNAL_VERSIONS, ConfiguredMetrics
from steersman.simulated_metrics.resource_metrics import (
    NODE_METRICS_RESOURCE,
    POD_METRICS_RESOURCE,
    Measured,
    MeasuredNodes,
    MeasuredPods,
    UsageStorage,
)

_PRIORITY: Final = 100
"""Priority of the APIServices, as that of metrics-server and of adapters."""


async def serve_metrics(
    plane: ControlPlane, client: Client, informers: Callable[[], Informers], usages: Usages, load: Load
) -> None:
    """Serve the metrics APIs until the control plane stops.

    `client` may read everything. `informers` returns the running informers. If an APIService points to another server,
    that server responds instead. Raises StatusError, Unreachable.
    """
    await _serve(plane, POD_METRICS_RESOURCE, MeasuredPods(informers, usages))
    await _serve(plane, NODE_METRICS_RESOURCE, MeasuredNodes(informers, usages))
    server = plane.server
    assert server is not None
    given = ConfiguredMetrics(client, server.catalogue, load)
    versions = [(RESOURCE_METRICS, "v1beta1")]
    for group, of_group, answer in (
        (CUSTOM_METRICS, CUSTOM_VERSIONS, given.custom),
        (EXTERNAL_METRICS, EXTERNAL_VERSIONS, given.external),
    ):
        server.add_prefix(f"/apis/{group}/", answer)
        for version in of_group:
            found = {"version": version, "resources": [], "freshness": "Current"}
            server.catalogue.declare(group, version, encode_in_order(found))
            versions.append((group, version))
    for group, version in versions:
        await _register(client, group, version)


async def _serve(plane: ControlPlane, resource: Any, objects: Measured[Any]) -> None:
    storage = UsageStorage(resource, objects)
    await plane.serve_custom(resource, lambda *_: True, on=lambda *_: storage)


async def _register(client: Client, group: str, version: str) -> None:
    """Create the APIService of a local group version, if there is none."""
    service = APIService(
        metadata=ObjectMeta(name=f"{version}.{group}"),
        spec=APIServiceSpec(group=group, version=version, group_priority_minimum=_PRIORITY, version_priority=_PRIORITY),
    )
    with ignoring(is_already_exists):
        await client.create(API_SERVICES, service)
