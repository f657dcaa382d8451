"""HTTP servers of all simulated nodes and their pods, in this process and without sockets.

Their addresses are not on the network. Code of this process that dials such an address, like the API server, gets a
connection to this server instead (`way`); no other process can reach it. The kubelet's port of a node accepts only the
API server's client of kubelets (`way_of_kubelet_client`), as a real kubelet accepts only its certificate. Requests that
the API server proxies for users are refused there.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn
from urllib.parse import unquote

from steersman.api.core.v1 import Pod
from steersman.client.client import Client
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import Informer, key_of
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.net.ascii import is_digits
from steersman.net.client.dial import DialError, connected, dial, host_port
from steersman.net.client.transport import Address, Way
from steersman.net.message import Request, Response
from steersman.net.server import HttpServer
from steersman.net.upgrade import UpgradedConnection
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.container_status import sandbox_id
from steersman.nodes.containers import Containers
from steersman.nodes.kwok.pod_objects import Refused
from steersman.nodes.pod_ranges import PodRanges, range_of
from steersman.nodes.server.commands import attach_to, exec_in, run_in
from steersman.nodes.server.kubelet import ContainerRequest, Kubelet, Query, container_of, is_running, query_of, text
from steersman.nodes.server.logs import container_logs
from steersman.nodes.server.metric_pages import metrics_page
from steersman.nodes.server.pages import PAGES
from steersman.nodes.server.pod_answers import answer_of_pod
from steersman.nodes.server.pod_connections import PodConnections
from steersman.nodes.server.port_forward import forward_ports
from steersman.nodes.simulated_node import SimulatedNode
from steersman.nodes.volume_places import of_node
from steersman.work.offloading import offload

_OF_CONTAINERS: Final = frozenset({"attach", "containerLogs", "exec", "run"})
_SERVE: Final = f"{PREFIX}serve."
WEBHOOKS: Final = f"{PREFIX}webhooks"
"""Annotation of pods that serve as webhooks: `allow`, or `refuse`."""


class NodeServers:
    """Servers of nodes and pods: `start`, then `await stop()`.

    With `serves_local`, annotations of pods may forward their ports to addresses that this machine can reach.
    """

    def __init__(
        self,
        nodes: Sequence[SimulatedNode],
        containers: Containers,
        *,
        serves_local: bool = False,
        answers_webhooks: bool = False,
    ) -> None:
        self.containers: Final = containers
        self._nodes: dict[str, SimulatedNode] = {}
        self._by_range: dict[int, SimulatedNode] = {}
        self._further_ranges: PodRanges[SimulatedNode] = PodRanges()
        self._outside: dict[str, SimulatedNode] = {}
        """Nodes by the addresses of their pods that are not in their ranges."""
        for each in nodes:
            self.add(each)
        self.serves_local = serves_local
        """True if annotations of pods may forward their ports."""
        self._answers_webhooks = answers_webhooks
        self.refused: Callable[[Pod], None] = _nobody
        """Called with a pod that got a TLS connection, which no simulated container accepts."""
        self._of_pods = PodConnections()
        self._server: HttpServer | None = None
        self._for_strangers: HttpServer | None = None
        self._pods: Informer[Pod] | None = None
        self._client: Client | None = None

    def start(self, client: Client, pods: Informer[Pod]) -> None:
        """Start to respond. `client` reads the environments of containers."""
        pods.add_index(BY_NODE, by_node)
        self._client, self._pods = client, pods
        self._server = HttpServer(self._answer)
        self._server.begin()
        self._for_strangers = HttpServer(_unauthorized)
        self._for_strangers.begin()

    async def stop(self) -> None:
        """Stop and close all connections."""
        servers = self._server, self._for_strangers
        self._server = self._for_strangers = None
        for each in servers:
            if each is not None:
                await each.close()

    def add(self, node: SimulatedNode) -> None:
        """Respond for a node and its pods from now on."""
        self._nodes[node.address] = node
        self._by_range[int(node.pod_cidr.network_address) >> 8] = node
        node.further_ranges = self._further_ranges
        node.outside = self._outside

    def remove(self, node: SimulatedNode) -> None:
        """Stop responding for a node, unless another node has its addresses by now, and delete its files."""
        self.containers.contents.store.drop(of_node(node.name))
        network = int(node.pod_cidr.network_address) >> 8
        if self._nodes.get(node.address) is node:
            del self._nodes[node.address]
        if self._by_range.get(network) is node:
            del self._by_range[network]
        self._further_ranges.release(node)

    # Routes to addresses

    def way(self, address: Address) -> Way | None:
        """Return the way to an address of a node or a pod; None for any other address."""
        if address.host in self._nodes or self._node_of_pod(address.host) is not None:
            return partial(self._connect, address.host, address.port)
        return None

    def way_of_kubelet_client(self, address: Address) -> Way | None:
        """Return the way to an address for the API server's client of kubelets, which kubelets authorize; None if
        unknown.
        """
        node = self._nodes.get(address.host)
        if node is not None and address.port == node.template.kubelet_port:
            return partial(self._connect_to_kubelet, node, address.port)
        return self.way(address)

    async def _connect_to_kubelet(
        self, node: SimulatedNode, port: int, tls: ssl.SSLContext | None, server_name: str
    ) -> UpgradedConnection:
        """Connect to a kubelet with authorization. Raises DialError."""
        if node.unreachable:
            raise _dial_error(node.address, port, "no route to host")
        return self._accepted_by(self._server, node.address, port)

    def _node_of_pod(self, host: str) -> SimulatedNode | None:
        if (outside := self._outside.get(host)) is not None:
            return outside
        number = range_of(host)
        if number is None:
            return None
        return self._by_range.get(number) or self._further_ranges.owner(number)

    async def _connect(self, host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> UpgradedConnection:
        """Connect to an address. Raises DialError with Go's message."""
        node = self._nodes.get(host)
        if node is not None and port == node.template.kubelet_port:
            if node.unreachable:
                raise _dial_error(host, port, "no route to host")
            return self._connected(host, port)
        pod = self._pod_at(host, port)
        if pod is None:
            raise _dial_error(host, port, "connection refused" if node is not None else "no route to host")
        return await self._connect_to_pod(pod, port, tls, server_name, host=host)

    def _connected(self, host: str, port: int) -> UpgradedConnection:
        """Return a connection; at a node's kubelet port, to a server that answers 401."""
        node = self._nodes.get(host)
        stranger = node is not None and port == node.template.kubelet_port
        return self._accepted_by(self._for_strangers if stranger else self._server, host, port)

    def _accepted_by(self, server: HttpServer | None, host: str, port: int) -> UpgradedConnection:
        if server is None:
            raise _dial_error(host, port, "connection refused")
        return connected(server.accept, (host, port))

    def _pod_at(self, host: str, port: int) -> Pod | None:
        """Return the pod with an address; for a node's address, the running host-network pod with the port."""
        if self._pods is None:
            return None
        node = self._nodes.get(host)
        if node is not None:
            for pod in self._pods.indexed(BY_NODE, node.name):
                if _listens_on_host(pod, host, port):
                    return pod
            return None
        node = self._node_of_pod(host)
        key = None if node is None else node.pod_at(host)
        return None if key is None else self._pods.get(*key)

    async def _connect_to_pod(
        self, pod: Pod, port: int, tls: ssl.SSLContext | None = None, server_name: str = "", *, host: str = ""
    ) -> UpgradedConnection:
        """Connect to a port of a pod. Raises DialError."""
        host = host or pod.status.pod_ip
        uid = pod.metadata.uid
        current = None if self._pods is None else self._pods.get(*key_of(pod))
        if current is None or current.metadata.uid != uid or is_terminal(current):
            raise DialError(f'failed to find sandbox "{sandbox_id(uid)}" in store: not found')
        pod = current
        node = self._nodes.get(pod.status.host_ip)
        if node is not None and node.unreachable:
            raise _dial_error(host, port, "no route to host")
        told = _ports(pod)
        local = self._local(pod, port)
        runs = any(is_running(pod, each.name) for each in pod.spec.containers or ())
        if not runs or (told and port not in told and local is None):
            raise _dial_error(host, port, "connection refused")
        if local is not None:
            return self._of_pods.add(uid, await dial(*local, tls, server_name=server_name))
        if tls is not None and not self._is_reviewer(pod):  # simulated containers serve plain HTTP
            self.refused(pod)
            raise DialError("http: server gave HTTP response to HTTPS client")
        return self._of_pods.add(uid, self._connected(host, port))

    async def _forward(self, pod: Pod, port: int) -> UpgradedConnection:
        """Connect to a forwarded port of a pod, or to the target that a PortForward object names for it.

        A target outside of the cluster is reached only if annotations may name such targets, too. Raises DialError.
        """
        objects = self.containers.objects
        try:
            target = None if objects is None else await objects.target(pod, port)
        except Refused as error:
            raise DialError(str(error)) from None
        if target is None:
            return await self._connect_to_pod(pod, port)
        uid = pod.metadata.uid
        if self.way(Address(target.address, target.port, secure=False)) is not None:
            return self._of_pods.add(uid, await self._connect(target.address, target.port, None, ""))
        if not self.serves_local:
            raise DialError(f"{host_port(target.address, target.port)} is outside of the cluster (serveLocal)")
        return self._of_pods.add(uid, await dial(target.address, target.port))

    def end_connections(self, uid: str) -> None:
        """Close the connections to a pod that has ended."""
        self._of_pods.end(uid)

    def _is_reviewer(self, pod: Pod) -> bool:
        """Return True if a pod serves as a webhook that allows everything, or as an API server without resources."""
        said = pod.metadata.annotations.get(WEBHOOKS, "")
        return said == "allow" or (self._answers_webhooks and not said)

    def _local(self, pod: Pod, port: int) -> tuple[str, int] | None:
        """Return the address to which an annotation forwards a port; None without one, or where that is not allowed."""
        said = pod.metadata.annotations.get(f"{_SERVE}{port}", "")
        if not (self.serves_local and said):
            return None
        host, _, number = said.rpartition(":")
        if not is_digits(number) or not 0 < int(number[:6]) < 65536:
            return None
        return host.strip("[]") or "127.0.0.1", int(number)

    # Responses

    async def _answer(self, request: Request) -> Response:
        host, port = request.peer.reached
        node = self._nodes.get(host)
        if node is not None and port == node.template.kubelet_port:
            return await self._answer_of_kubelet(node, request)
        pod = self._pod_at(host, port)
        if pod is None:
            return text(503, "the pod is gone\n")
        return await answer_of_pod(pod, port, request, reviews=self._is_reviewer(pod))

    async def _answer_of_kubelet(self, node: SimulatedNode, request: Request) -> Response:
        assert self._pods is not None
        assert self._client is not None
        if node.unreachable:
            return Response(503, [], b"", close=True)
        kubelet = Kubelet(node, self._pods, self._client, self.containers, self._forward)
        path = request.path.strip("/")
        parts = [unquote(each) for each in path.split("/")]
        if parts[0] in _OF_CONTAINERS and len(parts) in (4, 5):
            return await _of_container(kubelet, parts, request)
        if parts[0] == "portForward" and len(parts) in (3, 4):
            return _of_pod(kubelet, parts, request, query_of(request))
        page = PAGES.get(path)
        if parts[0] == "metrics" and self.containers.objects is not None:
            found = await metrics_page(kubelet, request)
            if found is not None:
                return found
        return text(404, "404 page not found\n") if page is None else await offload(page, kubelet, request)


def _nobody(_: Pod) -> None:
    """Do nothing."""


async def _unauthorized(request: Request) -> Response:
    """Return the kubelet's response to a client without a certificate."""
    return text(401, "Unauthorized")


async def _of_container(kubelet: Kubelet, parts: list[str], request: Request) -> Response:
    what, namespace, name, container_name = parts[0], parts[1], parts[2], parts[-1]
    pod = kubelet.pod(namespace, name)
    if pod is None or (len(parts) == 5 and pod.metadata.uid != parts[3]):
        return text(404, f'pod "{name}" does not exist' if what == "containerLogs" else "pod does not exist")
    container = container_of(pod, container_name)
    if container is None:
        if what == "containerLogs":
            return text(404, f'container "{container_name}" not found in pod "{name}"')
        return text(500, f'container not found ("{container_name}")')
    target = ContainerRequest(kubelet, pod, container, query_of(request))
    match what:
        case "containerLogs":
            return await container_logs(target)
        case "exec":
            return exec_in(target, request)
        case "attach":
            return attach_to(target, request)
    return await run_in(target, request)


def _of_pod(kubelet: Kubelet, parts: list[str], request: Request, query: Query) -> Response:
    pod = kubelet.pod(parts[1], parts[2])
    if pod is None:
        return text(404, "pod does not exist")
    if len(parts) == 4 and pod.metadata.uid != parts[3]:
        return text(404, "pod not found")
    return forward_ports(kubelet, pod, request, query)


def _ports(pod: Pod) -> frozenset[int]:
    """Return the ports that the pod's containers declare."""
    return frozenset(port.container_port for each in pod.spec.containers or () for port in each.ports)


def _listens_on_host(pod: Pod, host: str, port: int) -> bool:
    """Return True if a running host-network pod has a TCP port at an address of its node.

    A node admits only one such pod for a port. Others may declare the port for UDP or another address, or may have been
    refused because of it.
    """
    return (
        pod.spec.host_network
        and any(
            each.container_port == port and each.protocol == "TCP" and each.host_ip in ("", "0.0.0.0", "::", host)
            for container in pod.spec.containers or ()
            for each in container.ports
        )
        and any(is_running(pod, each.name) for each in pod.spec.containers or ())
    )


async def refuse_connection(host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> NoReturn:
    """Fail as a connection to a port does that nobody listens on. Raises DialError."""
    raise _dial_error(host, port, "connection refused")


def _dial_error(host: str, port: int, why: str) -> DialError:
    return DialError(f"dial tcp {host_port(host, port)}: connect: {why}")
