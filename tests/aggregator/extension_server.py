"""An aggregated server as a real HTTPS server, and the objects that register it."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client

GROUP = "things.example.com"
NAME = f"v1.{GROUP}"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
ROOT = f"/apis/{GROUP}/v1"
THINGS = f"{ROOT}/namespaces/default/things"
RESOURCES = [
    {
        "name": "things",
        "singularName": "thing",
        "namespaced": True,
        "kind": "Thing",
        "verbs": ["get"],
        "shortNames": ["th"],
    },
    {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["patch"]},
]
LIST = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": RESOURCES}

Fields = dict[str, list[str]]
Answer = Callable[["Received"], "bytes | None"]
"""Returns a whole HTTP response to a request; None for 404."""


class Received:
    """A request that the server received."""

    def __init__(self, head: str, body: bytes) -> None:
        line, *fields = head.strip().split("\r\n")
        self.method, self.target, _ = line.split(" ")
        self.body = body
        self.fields: Fields = {}
        for name, value in (each.split(": ", 1) for each in fields):
            self.fields.setdefault(name.lower(), []).append(value)

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def first(self, name: str) -> str:
        return self.fields.get(name, [""])[0]


def response(body: bytes | str | Any = b"", status: str = "200 OK", *fields: str, kind: str = "text/plain") -> bytes:
    """Return an HTTP response; a body other than text is encoded as JSON."""
    if not isinstance(body, bytes | str):
        body, kind = json.dumps(body), "application/json"
    data = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data


class ExtensionServer:
    """A server that serves its discovery and the answers in `paths`; an answer of b"" closes the connection."""

    def __init__(self, files: CertificateFiles, host: str = "127.0.0.1") -> None:
        self._files = files
        self.host = host
        self.port = 0
        self.paths: dict[str, Answer | bytes] = {ROOT: response(LIST)}
        self.received: list[Received] = []
        self.connections = 0
        self.subjects: list[Any] = []
        """The subjects of the client certificates received."""
        self.held: asyncio.Event | None = None
        self.silent: Callable[[str], bool] = lambda path: False
        """Return True for a path whose requests are never answered."""
        self._stopping = asyncio.Event()
        self._came = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.ended: list[str] = []
        """For each closed connection, the path of its last request."""

    async def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._files.server, self._files.server_key)
        context.load_verify_locations(self._files.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._stopping.set()
        if self._server is not None:
            self._server.close()
            self._server = None
        for each in list(self._open):
            each.close()

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self._files.ca.read_bytes()).decode()

    async def wait_for_requests(self, path: str, count: int = 1) -> list[Received]:
        """Wait for this number of requests for a path, and return them."""
        async with asyncio.timeout(20), self._came:
            await self._came.wait_for(lambda: len(self.requests_for(path)) >= count)
        return self.requests_for(path)

    def requests_for(self, path: str) -> list[Received]:
        return [each for each in self.received if each.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.subjects.append(writer.get_extra_info("peercert"))
        self._open.add(writer)
        request: Received | None = None
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request = Received(head, b"")
                if request.first("transfer-encoding") == "chunked":
                    while (size := int(await reader.readline(), 16)) > 0:
                        request.body += (await reader.readexactly(size + 2))[:-2]
                    await reader.readline()
                else:
                    request.body = await reader.readexactly(int(request.first("content-length") or 0))
                async with self._came:
                    self.received.append(request)
                    self._came.notify_all()
                if self.held is not None:
                    await self.held.wait()
                if self.silent(request.path):
                    await self._stopping.wait()
                    return
                answer = self.paths.get(request.path)
                data = answer if isinstance(answer, bytes) or answer is None else answer(request)
                if data == b"":
                    return
                writer.write(response("not here", "404 Not Found") if data is None else data)
                await writer.drain()
                if data is not None and b" 101 " in data[:16]:
                    while piece := await reader.read(1 << 16):
                        writer.write(piece.upper())
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            return
        finally:
            writer.close()
            self._open.discard(writer)
            self.ended.append("" if request is None else request.path)


def own_address() -> str:
    """Return an address of this machine that endpoints may have, which excludes loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        address: str = probe.getsockname()[0]
        return address


async def publish(client: Client, server: ExtensionServer | None, **spec: Any) -> None:
    """Create the Service, its endpoint and the APIService."""
    ports = [{"name": "https", "port": 443}]
    body: dict[str, Any] = {"metadata": {"name": "things"}, "spec": {"ports": ports, "clusterIP": "None"}}
    answer = await client.post("/api/v1/namespaces/default/services", body)
    assert answer.status == 201, answer.body
    if server is not None:
        await add_endpoint(client, server)
    await register(client, server, **spec)


async def add_endpoint(client: Client, server: ExtensionServer) -> None:
    """Create the EndpointSlice."""
    body = {
        "metadata": {"name": "things-1", "labels": {"kubernetes.io/service-name": "things"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [server.host]}],
        "ports": [{"name": "https", "port": server.port}],
    }
    answer = await client.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", body)
    assert answer.status == 201, answer.body


async def register(client: Client, server: ExtensionServer | None, name: str = NAME, **spec: Any) -> None:
    """Create the APIService."""
    version, _, group = name.partition(".")
    full = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"name": "things", "namespace": "default"},
        **({"caBundle": server.ca_bundle} if server is not None else {"insecureSkipTLSVerify": True}),
        **spec,
    }
    answer = await client.post(API_SERVICES, {"metadata": {"name": name}, "spec": full})
    assert answer.status == 201, answer.body


async def condition(client: Client, name: str = NAME) -> dict[str, Any]:
    """Return the condition Available, {} if there is none."""
    body = (await client.get(f"{API_SERVICES}/{name}")).json()
    return next(iter(body.get("status", {}).get("conditions", ())), {})


async def until_reason(client: Client, reason: str, name: str = NAME) -> dict[str, Any]:
    """Wait until the condition Available has this reason, and return it."""
    await until(lambda: has_reason(client, reason, name))
    return await condition(client, name)


async def has_reason(client: Client, reason: str, name: str) -> bool:
    return (await condition(client, name)).get("reason") == reason


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(20):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.01)
