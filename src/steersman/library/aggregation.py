"""Aggregation of a library server behind a Kubernetes cluster, and the objects that register the server there."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steersman.library.declaration import Declaration
from steersman.library.models import Plain

_PORT_NAME: Final = "https"


class ClusterError(OSError):
    """Raised if the cluster cannot be reached or denies this server something it needs; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """A server behind a Kubernetes, which sends it all requests for its groups: `Server(Flunder, aggregation=...)`.

    The cluster authenticates and authorizes users. The cluster is that of the current context of `kubeconfig`, by
    default that of the pod in which the server runs. The cluster reaches the server as the Service `service` in
    `namespace`.

    With `address`, an IP address of this machine, registration creates that Service for a server outside of the
    cluster. Without it, you create the Service, which selects the server's pods. With `register` the server registers
    itself when it starts.
    """

    service: str
    namespace: str = "default"
    port: int = 443
    """The port of the Service."""
    kubeconfig: Path | str = ""
    address: str = ""
    register: bool = False
    group_priority_minimum: int = 1000
    version_priority: int = 15

    @property
    def host(self) -> str:
        """The DNS name in the server's certificate that the cluster expects."""
        return f"{self.service}.{self.namespace}.svc"


def manifests(
    aggregation: Aggregation, declarations: Sequence[Declaration], authority: bytes, secure_port: int
) -> Iterator[Plain]:
    """Yield the objects that register a server: an APIService for each group version.

    With an `address`, the Service and its EndpointSlice come first. The cluster verifies the server's certificate with
    `authority` (PEM).
    """
    if aggregation.address:
        yield from _service(aggregation, secure_port)
    served = {(each.group, version.name): None for each in declarations for version in each.versions if version.served}
    for group, version in served:
        yield _api_service(aggregation, group, version, authority)


def _service(aggregation: Aggregation, secure_port: int) -> Iterator[Plain]:
    name, namespace = aggregation.service, aggregation.namespace
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": _PORT_NAME, "port": aggregation.port, "targetPort": secure_port}]},
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv6" if ":" in aggregation.address else "IPv4",
        "endpoints": [{"addresses": [aggregation.address], "conditions": {"ready": True}}],
        "ports": [{"name": _PORT_NAME, "port": secure_port, "protocol": "TCP"}],
    }


def _api_service(aggregation: Aggregation, group: str, version: str, authority: bytes) -> Plain:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": aggregation.group_priority_minimum,
            "versionPriority": aggregation.version_priority,
            "caBundle": base64.b64encode(authority).decode(),
            "service": {"name": aggregation.service, "namespace": aggregation.namespace, "port": aggregation.port},
        },
    }
