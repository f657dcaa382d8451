"""Requests to a node's kubelet, and the data that responses are made from (pkg/kubelet/server)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qs

from msgspec import Struct

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.client.client import Client
from steersman.client.indexes import BY_NODE
from steersman.client.informer import Informer
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.net.message import Request, Response
from steersman.net.upgrade import UpgradedConnection
from steersman.nodes.containers import Containers
from steersman.nodes.simulated_node import SimulatedNode

Query = Mapping[str, Sequence[str]]


class Kubelet(Struct, frozen=True):
    """Kubelet of one node, with the sources of its responses."""

    node: SimulatedNode
    pods: Informer[Pod]
    client: Client
    containers: Containers
    connect: Callable[[Pod, int], Awaitable[UpgradedConnection]]
    """Connects to a port of a pod. Raises DialError."""

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod of the node, or None."""
        pod = self.pods.get(namespace, name)
        return pod if pod is not None and pod.spec.node_name == self.node.name else None

    def all_pods(self) -> Sequence[Pod]:
        """Return the pods of the node."""
        return self.pods.indexed(BY_NODE, self.node.name)


class ContainerRequest(Struct, frozen=True):
    """Request for a container of a pod."""

    kubelet: Kubelet
    pod: Pod
    container: AnyContainer
    query: Query

    @property
    def status(self) -> ContainerStatus | None:
        """Current status of the container; None if its pod is gone."""
        pod = self.kubelet.pods.get(self.pod.metadata.namespace, self.pod.metadata.name)
        if pod is None or pod.metadata.uid != self.pod.metadata.uid:
            return None
        return status_of(pod, self.container.name)

    def flag(self, name: str) -> bool:
        """Return True if a query parameter is `1` or `true`."""
        return self.query.get(name, ("",))[0] in ("1", "true")


def container_of(pod: Pod, name: str) -> AnyContainer | None:
    """Return the container of a pod with the given name, or None."""
    return next((each for each in all_containers(pod.spec) if each.name == name), None)


def status_of(pod: Pod, name: str) -> ContainerStatus | None:
    """Return the status of the container with the given name, or None."""
    status = pod.status
    for each in (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses):
        if each.name == name:
            return each
    return None


def is_running(pod: Pod, name: str) -> bool:
    """Return True if a container runs."""
    status = status_of(pod, name)
    return status is not None and status.state.running is not None


def query_of(request: Request) -> Query:
    """Return the query parameters of a request: lists of values by name."""
    return parse_qs(request.query, keep_blank_values=True, max_num_fields=10_000, errors="surrogateescape")


def text(status: int, said: str) -> Response:
    """Return a response in plain text."""
    return Response(status, [("content-type", "text/plain; charset=utf-8")], said.encode(errors="replace"))
