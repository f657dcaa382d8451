"""Logs, commands, port forwarding and proxying through the server to a kubelet, with a real kubectl."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from steersman.testing import ServerProcess
from tests.e2e.fake_kubelet import ADDRESS, Certificates, Kubelet, add_node, add_pod, needs_address

if TYPE_CHECKING:
    from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}
both_protocols = pytest.mark.parametrize("protocol", [SPDY, WEBSOCKETS], ids=["spdy", "websocket"])


@pytest.fixture(scope="module")
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    addresses = ["127.0.0.1", ADDRESS] if ADDRESS else ["127.0.0.1"]
    kubelet = Kubelet(Certificates(tmp_path_factory.mktemp("kubelet"), *addresses))
    kubelet.start()
    yield kubelet
    kubelet.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubelet: Kubelet) -> Iterator[ServerProcess]:
    made = kubelet.certificates
    process = ServerProcess(
        tmp_path_factory.mktemp("server") / "data",
        f"--kubelet-client-certificate={made.client.cert_file}",
        f"--kubelet-client-key={made.client.key_file}",
        f"--kubelet-certificate-authority={made.ca}",
    )
    process.start()
    yield process
    if process.running:
        assert process.stop() == 0, process.errors.read_text()


@pytest.fixture
def pod(server: ServerProcess, kubelet: Kubelet, kubectl: Kubectl) -> str:
    """Return the name of a pod on the kubelet's node, in kubectl's namespace."""
    add_node(server, "n", "127.0.0.1", kubelet.port)
    add_pod(server, kubectl.namespace, "a")
    return "a"


@pytest.fixture
def speaking(protocol: dict[str, str], kubectl: Kubectl) -> Kubectl:
    """Return kubectl with one of the two protocols."""
    kubectl.environment.update(protocol)
    return kubectl


# Logs


def test_logs(kubectl: Kubectl, kubelet: Kubelet, pod: str) -> None:
    assert kubectl("logs", pod) == "one\ntwo\nthree\n"
    assert kubelet.last.path == f"/containerLogs/{kubectl.namespace}/a/c"
    assert kubelet.last.client == "CN=apiserver"
    assert "authorization" not in kubelet.last.headers


def test_log_options_reach_the_kubelet(kubectl: Kubectl, kubelet: Kubelet, pod: str) -> None:
    options = ("--tail=1", "--previous", "--timestamps", "--since=5s", "--limit-bytes=100", "-c", "c")
    assert kubectl("logs", pod, *options) == "three\n"
    assert kubelet.last.query == {
        "tailLines": ["1"],
        "previous": ["true"],
        "timestamps": ["true"],
        "sinceSeconds": ["5"],
        "limitBytes": ["100"],
    }
    kubectl("logs", pod, "--since-time=2020-01-01T01:00:00+01:00")
    assert kubelet.last.query == {"sinceTime": ["2020-01-01T00:00:00Z"]}


def test_followed_logs_come_as_they_are_written(kubectl: Kubectl, kubelet: Kubelet, pod: str) -> None:
    kubelet.followers_gone.clear()
    with kubectl.following("logs", "-f", "--tail=1", pod) as lines:
        assert next(lines) == "three\n"
        kubelet.say("more")
        assert next(lines) == "more\n"
    assert kubelet.followers_gone.wait(10), "the kubelet was not told that the client has gone"
    kubelet.log.remove("more")


def test_what_the_kubelet_says_of_logs_it_has_not(kubectl: Kubectl, server: ServerProcess, pod: str) -> None:
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/b"
    spec = {"nodeName": "n", "containers": [{"name": "broken", "image": "x"}]}
    with server.client() as client:
        client.request("POST", path.removesuffix("/b"), {"metadata": {"name": "b"}, "spec": spec})
        code, status = client.json("GET", f"{path}/log")
    assert (code, status["reason"]) == (500, "InternalError")
    assert status["message"] == "Internal error occurred: the container is broken"


def test_a_kubelet_that_cannot_be_reached(kubectl: Kubectl, server: ServerProcess) -> None:
    add_node(server, "down", "127.0.0.1", 1)
    add_pod(server, kubectl.namespace, "down", "down")
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/down"
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    with server.client() as client:
        code, status = client.json("GET", f"{path}/log")
        assert code == 500
        assert status["message"] == (f'Get "https://127.0.0.1:1/containerLogs/{kubectl.namespace}/down/c": {refused}')
        code, body = client.request("POST", f"{path}/exec?command=x&stdout=1")
        assert (code, b"Upgrade request required" in body) == (400, True)
        fields = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        code, body = client.request("POST", f"{path}/exec?command=x&stdout=1", headers=fields)
        assert (code, f"error dialing backend: {refused}".encode() in body) == (500, True)


def test_a_kubelet_with_a_foreign_certificate_is_not_spoken_to(
    kubectl: Kubectl, server: ServerProcess, tmp_path: Path
) -> None:
    stranger = Kubelet(Certificates(tmp_path, "127.0.0.1"))
    stranger.start()
    try:
        add_node(server, "strange", "127.0.0.1", stranger.port)
        add_pod(server, kubectl.namespace, "s", "strange")
        path = f"/api/v1/namespaces/{kubectl.namespace}/pods/s/log"
        with server.client() as client:
            code, status = client.json("GET", path)
            assert code == 500
            assert "tls: failed to verify certificate: x509: certificate signed by unknown" in status["message"]
            code, _ = client.request("GET", f"{path}?insecureSkipTLSVerifyBackend=true")
            # The stranger's own CA does not know our certificate: the handshake is refused by it, not by us.
            assert code == 500
    finally:
        stranger.stop()


# Commands


@both_protocols
def test_exec(speaking: Kubectl, kubelet: Kubelet, pod: str) -> None:
    assert speaking("exec", pod, "--", "echo", "hello", "there") == "hello there\n"
    assert kubelet.last.path == f"/exec/{speaking.namespace}/a/c"
    assert kubelet.last.query == {"command": ["echo", "hello", "there"], "output": ["1"], "error": ["1"]}
    assert kubelet.last.headers["upgrade"] == "SPDY/3.1"
    translated = kubelet.last.headers["user-agent"] == "steersman"
    assert translated == (speaking.environment["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"] == "true")
    assert "authorization" not in kubelet.last.headers


@both_protocols
def test_exec_tells_the_exit_code_and_both_outputs(speaking: Kubectl, pod: str) -> None:
    done = speaking.run("exec", pod, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert "err\n" in done.stderr
    assert "command terminated with exit code 7" in done.stderr


@both_protocols
def test_exec_with_input(speaking: Kubectl, pod: str) -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    assert speaking("exec", "-i", pod, "--", "cat", stdin=text) == text


@both_protocols
def test_exec_that_reads_no_input_ends(speaking: Kubectl, pod: str) -> None:
    assert speaking("exec", "-i", pod, "--", "true", stdin="x" * 1_000_000) == ""


@both_protocols
def test_what_the_kubelet_refuses(speaking: Kubectl, pod: str) -> None:
    assert "no commands here" in speaking.fails("exec", pod, "--", "refuse")


@both_protocols
def test_attach(speaking: Kubectl, pod: str) -> None:
    assert "attached\nSHOUT\n" in speaking("attach", "-i", pod, stdin="shout\n")


@both_protocols
def test_cp_both_ways(speaking: Kubectl, pod: str, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "from").write_bytes(data)
    (tmp_path / "there").mkdir()
    speaking("cp", str(tmp_path / "from"), f"{pod}:{tmp_path}/there/copy")
    assert (tmp_path / "there" / "copy").read_bytes() == data
    speaking("cp", f"{pod}:{tmp_path}/there/copy", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data


def websocket(server: ServerProcess, path: str, protocol: str = "v5.channel.k8s.io") -> connect:
    """Return a WebSocket client without an Origin, like kubectl's."""
    host, port = server.address
    return connect(f"wss://{host}:{port}{path}", ssl=server.context(), proxy=None, subprotocols=[Subprotocol(protocol)])


async def messages_of(client: ClientConnection) -> list[bytes]:
    """Return all messages up to the end."""
    return [each async for each in client if isinstance(each, bytes)]


async def test_the_messages_of_a_terminal(server: ServerProcess, kubelet: Kubelet, kubectl: Kubectl, pod: str) -> None:
    kubelet.sizes.clear()
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/exec?stdin=1&stdout=1&stderr=1&tty=1&command=cat"
    async with websocket(server, path) as client:
        assert await client.recv() == b"\x01"
        await client.send(b'\x04{"Width":80,"Height":24}')
        await client.send(b"\x04no size")
        await client.send(b"\x09nothing")
        await client.send(b"")
        await client.send(b"\x00one ")
        await client.send([b"\x00t", b"w", b"o"])
        got = b""
        while got != b"one two":
            message = await client.recv(decode=False)
            assert message[:1] == b"\x01"
            got += message[1:]
        await client.send(b"\xff\x00")
        assert await messages_of(client) == [b'\x03{"metadata":{},"status":"Success"}']
        assert client.close_code == 1000
    assert kubelet.sizes == [{"Width": 80, "Height": 24}]


async def test_a_command_ends_when_its_client_goes(
    server: ServerProcess, kubelet: Kubelet, kubectl: Kubectl, pod: str
) -> None:
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/attach?stdin=1&stdout=1"
    async with websocket(server, path) as client:
        assert [await client.recv(), await client.recv()] == [b"\x01", b"\x01attached\n"]
        assert kubelet.open_sessions == 1
    for _ in range(100):
        if not kubelet.open_sessions:
            break
        await asyncio.sleep(0.05)
    assert kubelet.open_sessions == 0


async def test_failures_are_told_on_the_error_channel(server: ServerProcess, kubectl: Kubectl, pod: str) -> None:
    add_node(server, "down", "127.0.0.1", 1)
    add_pod(server, kubectl.namespace, "down", "down")
    base = f"/api/v1/namespaces/{kubectl.namespace}/pods"

    async def failure(path: str) -> Any:
        async with websocket(server, base + path) as client:
            first, last = await messages_of(client)
            assert (len(first), last[:1]) == (1, b"\x03")
            return json.loads(last[1:])

    status = await failure("/down/exec?command=ls&stdout=1")
    text = (
        f'error sending request: Post "https://127.0.0.1:1/exec/{kubectl.namespace}/down/c?command=ls&output=1": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )
    assert status == {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {text}",
        "reason": "InternalError",
        "details": {"causes": [{"message": text}]},
        "code": 500,
    }
    status = await failure(f"/{pod}/exec?command=refuse&stderr=1")
    assert status["message"] == "Internal error occurred: unable to upgrade connection: no commands here"
    status = await failure(f"/{pod}/exec?command=false&stdout=1")
    assert status == {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code: command terminated with exit code 1",
        "details": {"causes": [{"reason": "ExitCode", "message": "1"}]},
    }
    with pytest.raises(InvalidStatus) as caught:
        await websocket(server, f"{base}/down/exec?command=ls&stdout=1", "v4.channel.k8s.io").__aenter__()
    assert caught.value.response.status_code == 500
    assert b"error dialing backend: " in caught.value.response.body


@pytest.mark.parametrize(
    ("protocol", "first", "text"),
    [("binary.k8s.io", b"", b"one\ntwo\nthree\n"), ("base64.binary.k8s.io", "", "b25lCnR3bwp0aHJlZQo=")],
)
async def test_logs_over_a_websocket(
    server: ServerProcess, kubectl: Kubectl, pod: str, protocol: str, first: bytes | str, text: bytes | str
) -> None:
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/log"
    async with websocket(server, path, protocol) as client:
        assert client.subprotocol == protocol
        assert [each async for each in client] == [first, text]
    with pytest.raises(InvalidStatus, match="403"):
        await websocket(server, path, "odd").__aenter__()


async def test_followed_logs_end_with_their_websocket(
    server: ServerProcess, kubelet: Kubelet, kubectl: Kubectl, pod: str
) -> None:
    kubelet.followers_gone.clear()
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/log?follow=true&tailLines=1"
    async with websocket(server, path, "binary.k8s.io") as client:
        assert [await client.recv(), await client.recv()] == [b"", b"three\n"]
    assert await asyncio.to_thread(kubelet.followers_gone.wait, 10)


# Port forwarding


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = f"{self.command} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Seen", ";".join(f"{name}={value}" for name, value in self.headers.items()))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def backend() -> Iterator[int]:
    """Yield the port of an HTTP server on all addresses of this machine."""
    server = ThreadingHTTPServer(("0.0.0.0", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@both_protocols
def test_port_forward(speaking: Kubectl, pod: str, backend: int) -> None:
    with speaking.following("port-forward", "--address=127.0.0.1", pod, f":{backend}") as lines:
        match = re.search(r"127\.0\.0\.1:(\d+)", next(lines))
        assert match is not None
        for number in range(5):
            client = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=10)
            body = os.urandom(300_000)
            client.request("POST", f"/{number}", body)
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (201, body)
            client.close()


def test_a_port_that_nothing_listens_on_is_told(kubectl: Kubectl, pod: str) -> None:
    with kubectl.following("port-forward", "--address=127.0.0.1", pod, ":1") as lines:
        match = re.search(r"127\.0\.0\.1:(\d+)", next(lines))
        assert match is not None
        with socket.create_connection(("127.0.0.1", int(match[1])), timeout=10) as connection:
            connection.sendall(b"x")
            assert any("nothing listens" in next(lines) for _ in range(3))


# Proxies


@pytest.fixture
def node(server: ServerProcess, kubelet: Kubelet) -> str:
    """Return a node at an address that is not a loopback one, so that requests may be proxied to it."""
    add_node(server, "proxied", ADDRESS, kubelet.port)
    return "/api/v1/nodes/proxied"


@needs_address
def test_a_request_to_a_node_is_passed_on_whole(server: ServerProcess, kubelet: Kubelet, node: str) -> None:
    with server.client() as client:
        fields = {"X-Mine": "1", "Connection": "X-Hop", "X-Hop": "1", "X-Forwarded-For": "1.2.3.4", "Te": "trailers"}
        path = f"{node}/proxy/a%20b/c/d/?q=1&r=%2F"
        code, body = client.request("PUT", path, b"body", fields)
        assert (code, body) == (200, b"body")
        seen = kubelet.last
        assert (seen.method, seen.path, seen.query) == ("PUT", "/a%20b/c/d/", {"q": ["1"], "r": ["/"]})
        assert seen.client == "CN=apiserver"
        assert seen.headers["x-mine"] == "1"
        assert seen.headers["x-forwarded-for"] == "1.2.3.4, 127.0.0.1"
        assert seen.headers["x-forwarded-uri"] == "/api/v1/nodes/proxied/proxy/a%20b/c/d/"
        assert seen.headers["host"] == "{}:{}".format(*server.address)
        assert seen.headers["te"] == "trailers"
        assert "x-hop" not in seen.headers
        assert client.request("POST", f"{node}/proxy", b"x") == (200, b"x")
        assert (kubelet.last.path, kubelet.last.headers["x-forwarded-uri"]) == ("/", f"{node}/proxy/")
        for method in ("GET", "POST", "PATCH", "DELETE", "OPTIONS"):
            assert client.request(method, f"{node}/proxy/x")[0] == 200
            assert kubelet.last.method == method
        assert client.request("HEAD", f"{node}/proxy/x") == (200, b"")


@needs_address
def test_what_a_node_answers_loses_what_is_for_the_connection(server: ServerProcess, node: str) -> None:
    connection = http.client.HTTPSConnection(*server.address, context=server.context())
    connection.request("GET", f"{node}:/proxy/x")
    answer = connection.getresponse()
    fields = {name.lower(): value for name, value in answer.getheaders()}
    assert (answer.status, answer.read()) == (200, b"hello")
    assert fields["x-kubelet"] == "yes"
    assert fields["content-length"] == "5"
    assert answer.headers.get_all("Cache-Control") == ["max-age=3", "no-cache, private"]
    assert not {"x-gone", "access-control-allow-origin"} & fields.keys()
    connection.close()


@needs_address
def test_links_lead_through_the_server(server: ServerProcess, node: str) -> None:
    connection = http.client.HTTPSConnection(*server.address, context=server.context())
    connection.request("GET", f"{node}/proxy/redirect")
    answer = connection.getresponse()
    answer.read()
    url = f"https://{connection.host}:{connection.port}/api/v1/nodes/proxied/proxy/there/?x=1"
    assert (answer.status, answer.headers["Location"]) == (302, url)
    connection.request("GET", f"{node}/proxy/page")
    page = connection.getresponse().read().decode()
    prefix = "/api/v1/nodes/proxied/proxy"
    assert page == (
        f'<p>A</p><a class="x" href="{prefix}/a/b">B</a><script>"</a>"</script><img src="{prefix}/i.png">'
        '<a href="c">C</a>'
    )
    connection.request("GET", f"{node}/proxy")
    answer = connection.getresponse()
    answer.read()
    assert (answer.status, answer.headers["Location"]) == (301, f"{node}/proxy/")
    connection.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.169.254"])
def test_nodes_at_loopback_addresses_are_not_proxied_to(server: ServerProcess, kubelet: Kubelet, address: str) -> None:
    add_node(server, "loop", address, kubelet.port)
    before = len(kubelet.seen)
    with server.client() as client:
        for name in ("loop", f"loop:{kubelet.port}", "http:loop:80"):
            code, status = client.json("GET", f"/api/v1/nodes/{name}/proxy/x")
            assert (code, status["message"]) == (400, "address not allowed")
    assert len(kubelet.seen) == before


@needs_address
def test_pods_and_services_are_proxied_to(
    kubectl: Kubectl, server: ServerProcess, kubelet: Kubelet, backend: int
) -> None:
    add_node(server, "n", "127.0.0.1", kubelet.port)
    add_pod(server, kubectl.namespace, "web", ip=ADDRESS, port=backend)
    base = f"/api/v1/namespaces/{kubectl.namespace}"
    with server.client() as client:
        for name in ("web", f"web:{backend}", f"http:web:{backend}"):
            assert client.request("GET", f"{base}/pods/{name}/proxy/a/?b=c") == (200, b"GET /a/?b=c")
        body = os.urandom(2_000_000)
        assert client.request("POST", f"{base}/pods/web/proxy/up", body) == (201, body)
        ports = [{"name": "http", "port": 80, "targetPort": backend}]
        service = {"metadata": {"name": "svc"}, "spec": {"ports": ports, "selector": {"app": "web"}}}
        assert client.request("POST", f"{base}/services", service)[0] == 201
        code, status = client.json("GET", f"{base}/services/svc:http/proxy/")
        assert (code, status["reason"]) == (404, "NotFound")
        target = {"kind": "Pod", "namespace": kubectl.namespace, "name": "web"}
        subset = {"addresses": [{"ip": ADDRESS, "targetRef": target}], "ports": [{"name": "http", "port": backend}]}
        code, _ = client.request("POST", f"{base}/endpoints", {"metadata": {"name": "svc"}, "subsets": [subset]})
        assert code == 201
        for name in ("svc:http", "svc:80", "http:svc:80"):
            assert client.request("GET", f"{base}/services/{name}/proxy/x") == (200, b"GET /x")
        assert client.request("GET", f"{base}/services/svc:81/proxy/x")[0] == 503
        code, status = client.json("GET", f"{base}/pods/https:web:{backend}/proxy/x")
        assert (code, status["reason"]) == (503, "ServiceUnavailable")
        assert status["message"].startswith("error trying to reach service: ")
    raw = kubectl("get", "--raw", f"{base}/services/http:svc:80/proxy/raw")
    assert raw == "GET /raw"


@needs_address
def test_other_protocols_pass_through_a_pods_proxy(kubectl: Kubectl, server: ServerProcess, kubelet: Kubelet) -> None:
    listener = socket.create_server(("0.0.0.0", 0))
    add_node(server, "n", "127.0.0.1", kubelet.port)
    add_pod(server, kubectl.namespace, "ws", ip=ADDRESS, port=listener.getsockname()[1])
    seen: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            seen.append(head)
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\nhi ")
            connection.sendall(connection.recv(4096).upper())

    thread = threading.Thread(target=serve)
    thread.start()
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/ws/proxy/sock"
    with (
        socket.create_connection(server.address, timeout=10) as plain,
        server.context().wrap_socket(plain, server_hostname=server.address[0]) as client,
    ):
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: odd\r\nCookie: a=b\r\n\r\n"
        client.sendall(head.encode())
        answer = b""
        while not answer.endswith(b"hi "):
            answer += client.recv(4096)
        client.sendall(b"there")
        assert client.recv(4096) == b"THERE"
        assert client.recv(4096) == b"", "the connection ends when the pod ends it"
    thread.join()
    listener.close()
    assert answer.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"Upgrade: odd\r\n" in seen[0]
    assert seen[0].startswith(b"GET /sock HTTP/1.1\r\nHost: x\r\n")


def test_a_stop_ends_what_is_passed_on(kubectl_for: Any, kubelet: Kubelet, tmp_path: Path) -> None:
    made = kubelet.certificates
    flags = (f"--kubelet-client-certificate={made.client.cert_file}", f"--kubelet-client-key={made.client.key_file}")
    server = ServerProcess(tmp_path / "data", *flags)
    server.start()
    try:
        kubectl = kubectl_for(server, "default")
        add_node(server, "n", "127.0.0.1", kubelet.port)
        add_pod(server, "default", "a")
        with kubectl.following("logs", "-f", "a") as logs, kubectl.following("attach", "-i", "a") as attached:
            assert next(logs) == "one\n"
            while "attached" not in next(attached):
                pass
            assert server.stop() == 0
    finally:
        server.kill()
