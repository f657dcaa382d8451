"""Behind which Kubernetes a server is, and how that one finds it: the objects that register it there."""

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
    """The cluster cannot be reached, or does not let this server read what it needs; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """A server behind a Kubernetes, which sends it all requests for its groups: `Server(Flunder, aggregation=...)`.

    The cluster says who its users are and what they may do. It is that of a `kubeconfig`'s current context; unless
    given, that of the pod in which the server runs. It reaches the server as the Service `service` in `namespace`. With
    `address`, an IP address of this machine, registering makes that Service lead there, for a server outside of the
    cluster; otherwise the Service is yours, and selects the server's pods. With `register` the server registers itself
    when it starts.
    """

    service: str
    namespace: str = "default"
    port: int = 443
    """Of the Service."""
    kubeconfig: Path | str = ""
    address: str = ""
    register: bool = False
    group_priority_minimum: int = 1000
    version_priority: int = 15

    @property
    def host(self) -> str:
        """The name by which the cluster knows the server's certificate."""
        return f"{self.service}.{self.namespace}.svc"


def manifests(
    aggregation: Aggregation, declarations: Sequence[Declaration], authority: bytes, secure_port: int
) -> Iterator[Plain]:
    """The objects that register a server: an APIService for each group version, before them what leads to it if it has
    an `address`. Its certificate is verified by the `authority` (PEM)."""
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
