"""Addresses of nodes, pods and Services, and the servers that answer on them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from steersman.api.apiregistration.v1 import APIService, APIServiceSpec, ServiceReference
from steersman.api.core.v1 import Container, ContainerPort, EnvVar, Pod, PodSpec, Service, ServicePort, ServiceSpec
from steersman.api.discovery.v1 import Endpoint, EndpointPort, EndpointSlice
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.client.client import MERGE_PATCH
from steersman.client.resources import API_SERVICES, ENDPOINT_SLICES, NODES, PODS, SERVICES
from steersman.controlplane.parts.resources import ResourceServices
from steersman.machinery.errors.status import StatusError
from steersman.net.client.dial import DialError
from steersman.net.client.http1 import send
from steersman.net.client.transport import Address
from steersman.net.message import Upgraded
from steersman.nodes.container_status import sandbox_id
from steersman.registry.core.services.locating import locate_service
from tests.controllers.waiting import eventually
from tests.nodes.server.requests import KUBELET, Node

PROXY = "/api/v1/nodes/node-0/proxy/"


async def test_a_pod_answers_at_its_ports(node: Node) -> None:
    await node.pod("p", ports=(8080,))
    reported = msgspec.json.decode(
        await node.client.request("GET", "/api/v1/namespaces/default/pods/p:8080/proxy/a?b=c")
    )
    assert (reported["hostname"], reported["port"], reported["target"]) == ("p", 8080, "/a?b=c")
    assert "authorization" not in reported["headers"]
    with pytest.raises(StatusError, match="connect: connection refused"):
        await node.client.request("GET", "/api/v1/namespaces/default/pods/p:81/proxy/")
    pod = await node.client.get(PODS, "p", "default")
    await node.client.delete(PODS, "p", "default")

    async def gone() -> bool:
        try:
            connection = await node.connect(Address(pod.status.pod_ip, 8080, secure=False))
        except DialError as error:
            return str(error) == f"dial tcp {pod.status.pod_ip}:8080: connect: no route to host"
        connection.close()
        return False

    await eventually(gone)


async def test_a_port_of_a_node_is_answered_by_the_pod_that_has_it(node: Node) -> None:
    async def made(name: str, port: ContainerPort, **spec: Any) -> None:
        containers = [Container(name="c", image="x", ports=[port])]
        spec = {"host_network": True, "node_name": "node-0", **spec}
        metadata = ObjectMeta(name=name, namespace="default")
        await node.client.create(PODS, Pod(metadata=metadata, spec=PodSpec(containers=containers, **spec)))

        async def is_seen_to() -> bool:
            return (await node.client.get(PODS, name, "default")).status.phase in ("Running", "Failed")

        await eventually(is_seen_to)

    await made("a-udp", ContainerPort(container_port=8443, protocol="UDP"))
    await made("b-elsewhere", ContainerPort(container_port=8443, host_port=8443, host_ip="127.0.0.1"))
    own = ContainerPort(container_port=8443, host_port=8443, host_ip=KUBELET.host)
    await made("c-own", own)
    await made("a-refused", own)
    connection = await node.connect(Address(KUBELET.host, 8443, secure=False))
    answer = await send(connection, "GET", "/hostname", [("Host", "node")])
    assert await answer.read(1000) == b"node-0\n"
    connection = await node.connect(Address(KUBELET.host, 8443, secure=False))
    answer = await send(connection, "GET", "/", [("Host", "node")])
    assert b"Pod: default/c-own\n" in await answer.read(1000)


@pytest.mark.parametrize(
    ("args", "path", "answer"),
    [
        (["serve-hostname"], "", b"p"),
        (["netexec"], "hostname", b"p"),
        (["netexec"], "echo?msg=hello", b"hello"),
        (["netexec"], "serverport", b"8080"),
        (["porter"], "", b"here"),
        (["porter", "--json-response"], "x", b'{"Method":"GET","Body":"here"}'),
    ],
)
async def test_agnhost_answers_as_configured(node: Node, args: list[str], path: str, answer: bytes) -> None:
    env = [EnvVar(name="SERVE_PORT_8080", value="here")]
    await node.pod("p", image="registry.k8s.io/e2e-test-images/agnhost:2.59", args=args, env=env)
    assert await node.client.request("GET", f"/api/v1/namespaces/default/pods/p:8080/proxy/{path}") == answer


async def test_a_port_can_be_served_by_a_local_address(node: Node) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nreal")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        await node.pod("p", ports=(80,), annotations={"simulation.steersman.dev/serve.80": f"127.0.0.1:{port}"})
        assert await node.client.request("GET", "/api/v1/namespaces/default/pods/p:80/proxy/") == b"real"
        node.cluster.servers.serves_local = False
        reported = await node.client.request("GET", "/api/v1/namespaces/default/pods/p:80/proxy/x")
        assert msgspec.json.decode(reported)["hostname"] == "p"
    finally:
        server.close()
        await server.wait_closed()


async def test_a_node_tells_of_itself(node: Node) -> None:
    await node.pod("p")
    assert await node.client.request("GET", f"{PROXY}healthz") == b"ok"
    assert [each["metadata"]["name"] for each in (await node.client.get_plain(f"{PROXY}pods"))["items"]] == ["p"]
    summary = await node.client.get_plain(f"{PROXY}stats/summary")
    assert summary["node"]["nodeName"] == "node-0"
    assert summary["pods"][0]["podRef"]["name"] == "p"
    assert (await node.client.get_plain(f"{PROXY}configz"))["kubeletconfig"]["maxPods"] == 110
    metrics = (await node.client.request("GET", f"{PROXY}metrics/resource")).decode()
    assert 'container_memory_working_set_bytes{container="c",namespace="default",pod="p"} ' in metrics
    assert "kubelet_running_pods 1" in (await node.client.request("GET", f"{PROXY}metrics")).decode()
    with pytest.raises(StatusError):
        await node.client.request("GET", f"{PROXY}nope")


async def test_a_nodes_port_obeys_the_api_server_alone(node: Node) -> None:
    """A pod in its node's network has the node's address. Other clients must not reach the kubelet through it."""
    await node.pod("victim")
    spec = PodSpec(
        host_network=True,
        containers=[Container(name="c", image="x", ports=[ContainerPort(container_port=10250, host_port=10250)])],
    )
    await node.client.create(PODS, Pod(metadata=ObjectMeta(name="host", namespace="default"), spec=spec))

    async def runs() -> bool:
        return (await node.client.get(PODS, "host", "default")).status.phase == "Running"

    await eventually(runs)
    for target in ("pods", "containerLogs/default/victim/c", "run/default/victim/c?cmd=env", "healthz"):
        with pytest.raises(StatusError) as refused:
            await node.client.request("GET", f"/api/v1/namespaces/default/pods/host:10250/proxy/{target}")
        assert refused.value.code == 401
    assert json.loads(await node.client.request("GET", "/api/v1/nodes/node-0/proxy/pods"))["kind"] == "PodList"
    session = await node.spdy("/portForward/default/host", "portforward.k8s.io")
    running = asyncio.create_task(session.run())
    fields = {"port": "10250", "requestid": "0"}
    await session.open({**fields, "streamtype": "error"}, 5)
    stream = await session.open({**fields, "streamtype": "data"}, 5)
    await stream.write(b"GET /pods HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
    assert b" 401 " in await stream.read()
    session.close()
    running.cancel()


async def test_a_node_can_be_out_of_reach(node: Node) -> None:
    await node.pod("p")
    mark = {"metadata": {"annotations": {"simulation.steersman.dev/unreachable": "true"}}}
    await node.client.patch(NODES, "node-0", "", mark, media=MERGE_PATCH)

    async def silent() -> bool:
        try:
            connection = await node.connect(KUBELET)
        except DialError as error:
            return str(error) == "dial tcp 172.16.0.2:10250: connect: no route to host"
        connection.close()
        return False

    await eventually(silent)
    with pytest.raises(StatusError, match="no route to host"):
        await node.logs("p")
    mark["metadata"]["annotations"]["simulation.steersman.dev/unreachable"] = "false"
    await node.client.patch(NODES, "node-0", "", mark, media=MERGE_PATCH)

    async def back() -> bool:
        return not await silent()

    await eventually(back)
    assert await node.logs("p")


async def test_other_addresses_are_those_of_the_network(node: Node) -> None:
    way = node.cluster.plane.embedding.nearby
    assert way is not None
    for host in ("127.0.0.1", "10.96.0.1", "172.16.0.3", "node-0", "fe80::1", "192.0.2.1"):
        assert way(Address(host, 10250)) is None


async def test_ports_are_forwarded(node: Node) -> None:
    await node.pod("p", ports=(80,))
    session = await node.spdy("/portForward/default/p", "portforward.k8s.io")
    running = asyncio.create_task(session.run())
    try:
        async with asyncio.timeout(10):
            errors = await session.open({"streamtype": "error", "port": "80", "requestid": "0"}, 5)
            data = await session.open({"streamtype": "data", "port": "80", "requestid": "0"}, 5)
            await data.write(b"GET /hostname HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert (await data.read_all(10_000)).endswith(b"\r\n\r\np\n")
            assert await errors.read_all(1000) == b""
            errors = await session.open({"streamtype": "error", "port": "81", "requestid": "1"}, 5)
            data = await session.open({"streamtype": "data", "port": "81", "requestid": "1"}, 5)
            said = (await errors.read_all(1000)).decode()
            assert said.startswith("error forwarding port 81 to pod p, uid ")
            assert said.endswith(":81: connect: connection refused")
    finally:
        session.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def open_websocket(node: Node, target: str) -> tuple[Upgraded, bytes]:
    """Open a WebSocket to the kubelet. Return the connection and the bytes received so far."""
    connection = await node.connect(KUBELET)
    fields = [
        ("Host", "node"),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ("Sec-WebSocket-Protocol", "v4.channel.k8s.io"),
    ]
    answer = await send(connection, "GET", target, fields)
    assert answer.status == 101
    return connection, answer.leftover


@pytest.mark.parametrize("target", ["/portForward/default/p?port=80", "/exec/default/p/c?command=cat&input=1"])
async def test_a_message_that_is_too_large_ends_a_websocket(node: Node, target: str) -> None:
    await node.pod("p")
    connection, read = await open_websocket(node, target)
    await connection.write(b"\x82\xff" + (5 << 20).to_bytes(8, "big") + bytes(4))
    async with asyncio.timeout(10):
        while piece := await connection.read():
            read += piece
    assert b"\x03\xf1" in read  # 1009
    connection.close()


async def test_messages_to_a_port_that_refuses_are_dropped(node: Node) -> None:
    await node.pod("p", ports=(8080,))
    connection, leftover = await open_websocket(node, "/portForward/default/p?port=81,8080")
    for _ in range(200):
        await connection.write(b"\x82\x82\x00\x00\x00\x00\x00x")
    request = b"GET /hostname HTTP/1.1\r\nHost: a\r\n\r\n"
    await connection.write(bytes((0x82, 0x80 | len(request) + 1)) + bytes(4) + b"\x02" + request)
    async with asyncio.timeout(10):
        read = bytearray(leftover)
        while b"\r\n\r\np\n" not in read:
            piece = await connection.read()
            assert piece
            read += piece
    connection.close()


async def test_connections_end_with_their_pod(node: Node) -> None:
    pod = await node.pod("p", ports=(80,))
    session = await node.spdy("/portForward/default/p", "portforward.k8s.io")
    running = asyncio.create_task(session.run())
    kept = await node.connect(Address(pod.status.pod_ip, 80))
    try:
        async with asyncio.timeout(10):
            await session.open({"streamtype": "error", "port": "80", "requestid": "0"}, 5)
            open_before = await session.open({"streamtype": "data", "port": "80", "requestid": "0"}, 5)
            await open_before.write(b"GET /hostname HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await open_before.read()).startswith(b"HTTP/1.1 200 ")
            await node.client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=0))
            await open_before.read_all(10_000)
            assert await kept.read() == b""
            errors = await session.open({"streamtype": "error", "port": "80", "requestid": "1"}, 5)
            await session.open({"streamtype": "data", "port": "80", "requestid": "1"}, 5)
            said = (await errors.read_all(1000)).decode()
            assert said == (
                f"error forwarding port 80 to pod p, uid {pod.metadata.uid}: "
                f'failed to find sandbox "{sandbox_id(pod.metadata.uid)}" in store: not found'
            )
    finally:
        session.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_pod_of_the_name_of_one_that_is_gone_gets_none_of_its_connections(node: Node) -> None:
    await node.pod("p", ports=(80,))
    session = await node.spdy("/portForward/default/p", "portforward.k8s.io")
    running = asyncio.create_task(session.run())
    try:
        await node.client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=0))
        await node.pod("p", ports=(80,))
        async with asyncio.timeout(10):
            errors = await session.open({"streamtype": "error", "port": "80", "requestid": "0"}, 5)
            await session.open({"streamtype": "data", "port": "80", "requestid": "0"}, 5)
            assert (await errors.read_all(1000)).endswith(b"in store: not found")
    finally:
        session.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _pod_behind_service(node: Node, name: str) -> Pod:
    """Create a Service that maps port 443 to port 8443 of a pod, and return the pod."""
    pod = await node.pod("p", ports=(8443,))
    metadata = ObjectMeta(name=name, namespace="default")
    port = ServicePort(name="https", port=443)
    await node.client.create(SERVICES, Service(metadata=metadata, spec=ServiceSpec(ports=[port])))
    metadata = ObjectMeta(name=name, namespace="default", labels={"kubernetes.io/service-name": name})
    await node.client.create(
        ENDPOINT_SLICES,
        EndpointSlice(
            metadata=metadata,
            address_type="IPv4",
            endpoints=[Endpoint(addresses=[pod.status.pod_ip])],
            ports=[EndpointPort(name="https", port=8443)],
        ),
    )
    return pod


async def test_an_aggregated_server_by_a_service_reaches_a_pod(node: Node) -> None:
    await _pod_behind_service(node, "api")
    service = ServiceReference(namespace="default", name="api", port=443)
    spec = APIServiceSpec(
        group="example.com",
        version="v1",
        service=service,
        insecure_skip_tls_verify=True,
        group_priority_minimum=100,
        version_priority=10,
    )
    await node.client.create(API_SERVICES, APIService(metadata=ObjectMeta(name="v1.example.com"), spec=spec))

    async def answered() -> bool:
        api_service = await node.client.get(API_SERVICES, "v1.example.com")
        return any(
            "server gave HTTP response to HTTPS client" in each.message for each in api_service.status.conditions
        )

    await eventually(answered)


async def test_a_webhook_by_a_service_reaches_a_pod(node: Node) -> None:
    pod = await _pod_behind_service(node, "hook")
    services = node.cluster.plane.part(ResourceServices).services

    async def place() -> Address | None:
        found = await locate_service(services, "default", "hook", 443)
        return found if found.way is not None else None

    found = await eventually(place)
    assert found is not None
    assert found[:2] == (pod.status.pod_ip, 8443)
    assert found.way is not None
    connection = await found.way(None, "hook.default.svc")
    answer = await send(connection, "GET", "/hostname", [("Host", "hook")])
    assert await answer.read(100) == b"p\n"


async def test_what_a_simulated_container_serves_is_no_tls(node: Node) -> None:
    await node.pod("p", ports=(8443,))
    with pytest.raises(StatusError, match="http: server gave HTTP response to HTTPS client"):
        await node.client.request("GET", "/api/v1/namespaces/default/pods/https:p:8443/proxy/")
