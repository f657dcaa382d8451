"""Kubelet with the protocols of real ones: logs, commands and port forwarding over SPDY, and a page of its own.

Commands run on this machine, so that `kubectl exec` and `kubectl cp` have something to talk to.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.net.message import Request, Response, Upgraded
from steersman.net.server import HttpServer
from steersman.net.spdy import Session, SpdyError, Stream
from steersman.net.tls import Certificate, ServerTLS
from steersman.testing import ServerProcess

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io")


def own_address() -> str:
    """Return an address of this machine that is not a loopback one, or "", without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address = str(probe.getsockname()[0])
        return "" if address.startswith("127.") else address


ADDRESS = own_address()
needs_address = pytest.mark.skipif(not ADDRESS, reason="this machine has no address but loopback ones")


class Certificates:
    """A CA, the kubelet's certificate and one for its client, as PEM files in a folder."""

    def __init__(self, folder: Path, *addresses: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ca = folder / "ca.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        authority = self._build("ca", self._key.public_key()).add_extension(x509.BasicConstraints(True, None), True)
        self._write(self.ca, authority)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(each)) for each in addresses])
        self.server = self._issue(folder, "kubelet", names, ExtendedKeyUsageOID.SERVER_AUTH)
        self.client = self._issue(folder, "apiserver", None, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _build(self, name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )

    def _write(self, file: Path, builder: x509.CertificateBuilder) -> None:
        file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _issue(
        self, folder: Path, name: str, alternatives: x509.SubjectAlternativeName | None, usage: x509.ObjectIdentifier
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._build(name, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, False)
        certificate, key_file = folder / f"{name}.crt", folder / f"{name}.key"
        self._write(certificate, builder)
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return Certificate(str(certificate), str(key_file))


@dataclass
class Seen:
    """Received request."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    client: str
    body: bytes = b""


@dataclass
class Kubelet:
    """Kubelet in a thread of its own. `say` adds a line to all followed logs."""

    certificates: Certificates
    host: str = ""
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    log: list[str] = field(default_factory=lambda: ["one", "two", "three"])
    followers_gone: threading.Event = field(default_factory=threading.Event)
    sizes: list[dict[str, int]] = field(default_factory=list)
    open_sessions: int = 0

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self._start())

    async def _start(self) -> None:
        self._followers: set[asyncio.Queue[str]] = set()
        tls = ServerTLS(  # HTTP/1.1, of which some fields are for the connection only
            [self.certificates.server], client_ca_files=[str(self.certificates.ca)], alpn_protocols=["http/1.1"]
        )
        self._server = HttpServer(self._handle, tls=tls)
        self.host, self.port = await self._server.start("0.0.0.0")

    def stop(self) -> None:
        self.do(self._server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the kubelet's event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def say(self, line: str) -> None:
        async def add() -> None:
            self.log.append(line)
            for each in self._followers:
                each.put_nowait(line)

        self.do(add())

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    async def _handle(self, request: Request) -> Response:
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        query = parse_qs(request.query)
        client = (
            ""
            if request.peer.certificate is None
            else x509.load_der_x509_certificate(request.peer.certificate).subject.rfc4514_string()
        )
        headers = {**request.headers, "host": request.host}
        self.seen.append(Seen(request.method, request.path, query, headers, client))
        answers: dict[str, Callable[[Request, list[str], dict[str, list[str]]], Awaitable[Response]]] = {
            "containerLogs": self._logs,
            "exec": self._exec,
            "attach": self._attach,
            "portForward": self._port_forward,
        }
        answer = answers.get(parts[0])
        if answer is None:
            self.last.body = await request.body.read(1 << 20)
            return self._page(request, parts)
        return await answer(request, parts, query)

    def _page(self, request: Request, parts: list[str]) -> Response:
        if parts[0] == "redirect":
            return Response(302, [("location", f"https://{request.host}/there/?x=1")])
        if parts[0] == "page":
            text = '<p>A</p><a class=x href="/a/b">B</a><script>"</a>"</script><img src=/i.png><a href="c">C</a>'
            return Response(200, [("content-type", "text/html")], text.encode())
        fields = [
            ("content-type", "text/plain"),
            ("access-control-allow-origin", "*"),
            ("x-kubelet", "yes"),
            ("cache-control", "max-age=3"),
        ]
        return Response(200, [*fields, ("connection", "x-gone"), ("x-gone", "1")], self.last.body or b"hello")

    # Logs

    async def _logs(self, request: Request, parts: list[str], query: dict[str, list[str]]) -> Response:
        if parts[3] == "broken":
            return Response(500, [], b"the container is broken")
        lines = self.log[-int(query["tailLines"][0]) :] if "tailLines" in query else list(self.log)
        if "follow" not in query:
            return Response(200, [("content-type", "text/plain")], "".join(f"{line}\n" for line in lines).encode())
        return Response(200, [("content-type", "text/plain")], self._follow(lines))

    async def _follow(self, lines: list[str]) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._followers.add(queue)
        try:
            for line in lines:
                yield f"{line}\n".encode()
            while True:
                yield f"{await queue.get()}\n".encode()
        finally:
            self._followers.discard(queue)
            self.followers_gone.set()

    # Commands

    async def _exec(self, request: Request, parts: list[str], query: dict[str, list[str]]) -> Response:
        command = query["command"]
        if command == ["refuse"]:
            return Response(403, [("content-type", "text/plain")], b"no commands here")

        async def run(streams: dict[str, Stream]) -> dict[str, Any]:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=-1, stdout=-1, stderr=-1 if "stderr" in streams else asyncio.subprocess.STDOUT
            )
            tasks = [asyncio.create_task(_copy_out(process.stdout, streams.get("stdout")))]
            if "stderr" in streams:
                tasks.append(asyncio.create_task(_copy_out(process.stderr, streams["stderr"])))
            feeding = asyncio.create_task(_feed(streams.get("stdin"), process))
            sizes = asyncio.create_task(self._note_sizes(streams.get("resize")))
            await asyncio.gather(*tasks)
            code = await process.wait()
            for task in (feeding, sizes):
                task.cancel()
            if code == 0:
                return {"status": "Success"}
            causes = [{"reason": "ExitCode", "message": str(code)}]
            return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}, "message": "exit"}

        return self._streams(request, query, run)

    async def _attach(self, request: Request, parts: list[str], query: dict[str, list[str]]) -> Response:
        async def shout(streams: dict[str, Stream]) -> dict[str, Any]:
            await streams["stdout"].write(b"attached\n")
            while "stdin" in streams and (data := await streams["stdin"].read()):
                await streams["stdout"].write(data.upper())
            return {"status": "Success"}

        return self._streams(request, query, shout)

    async def _note_sizes(self, resize: Stream | None) -> None:
        while resize is not None and (data := await resize.read()):
            self.sizes += [json.loads(line) for line in data.splitlines()]

    def _streams(
        self,
        request: Request,
        query: dict[str, list[str]],
        run: Callable[[dict[str, Stream]], Coroutine[Any, Any, dict[str, Any]]],
    ) -> Response:
        wanted = {"error"} | {name for name, key in (("stdin", "input"), ("stdout", "output")) if key in query}
        if "tty" in query:
            wanted.add("resize")
        elif "error" in query:
            wanted.add("stderr")

        async def serve(connection: Upgraded) -> None:
            streams: dict[str, Stream] = {}
            complete = asyncio.Event()

            async def accept(stream: Stream) -> bool:
                streams[stream.fields["streamtype"]] = stream
                if set(streams) == wanted:
                    complete.set()
                return True

            session = Session(connection, server=True, accept=accept)
            reading = asyncio.create_task(session.run())
            waiting = asyncio.create_task(complete.wait())
            self.open_sessions += 1
            try:
                await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
                if complete.is_set():
                    status = {"metadata": {}, **await run(streams)}
                    if "stdin" in streams:
                        streams["stdin"].ignore()  # nobody reads it any more
                    await streams["error"].write(json.dumps(status).encode())
                    for stream in streams.values():
                        await stream.end()
                    await reading
            except SpdyError:
                pass  # the other side has gone
            finally:
                self.open_sessions -= 1
                waiting.cancel()
                reading.cancel()
                await asyncio.gather(reading, waiting, return_exceptions=True)

        return _upgraded(request, serve)

    # Port forwarding

    async def _port_forward(self, request: Request, parts: list[str], query: dict[str, list[str]]) -> Response:
        async def serve(connection: Upgraded) -> None:
            errors: dict[str, Stream] = {}
            tasks: set[asyncio.Task[None]] = set()

            async def accept(stream: Stream) -> bool:
                number = stream.fields["requestid"]
                if stream.fields["streamtype"] == "error":
                    errors[number] = stream
                else:
                    tasks.add(asyncio.create_task(_forward(stream, errors[number])))
                return True

            session = Session(connection, server=True, accept=accept)
            try:
                await session.run()
            except SpdyError:
                pass  # the other side has gone
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        return _upgraded(request, serve)


def _upgraded(request: Request, serve: Callable[[Upgraded], Coroutine[Any, Any, None]]) -> Response:
    offered = [each.strip() for each in request.headers.get("x-stream-protocol-version", "").split(",")]
    chosen = next((each for each in offered if each in PROTOCOLS), "")
    if request.headers.get("upgrade") != "SPDY/3.1" or not chosen:
        return Response(400, [("content-type", "text/plain")], b"Bad Request: no SPDY")
    fields = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", chosen)]
    return Response(101, fields, upgrade=serve)


async def _copy_out(source: asyncio.StreamReader | None, sink: Stream | None) -> None:
    while source is not None and (data := await source.read(65536)):
        if sink is not None:
            await sink.write(data)
    if sink is not None:
        await sink.end()


async def _feed(stdin: Stream | None, process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    try:
        while stdin is not None and (data := await stdin.read()):
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()
    except (SpdyError, ConnectionError):
        process.stdin.close()


async def _forward(data: Stream, error: Stream) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(data.fields["port"]))
    except OSError as failure:
        await error.write(f"nothing listens: {failure.strerror}".encode())
        await error.end()
        await data.end()
        return

    async def there() -> None:
        while piece := await data.read():
            writer.write(piece)
            await writer.drain()
        writer.write_eof()

    going = asyncio.create_task(there())
    try:
        while piece := await reader.read(65536):
            await data.write(piece)
        await data.end()
        await error.end()
        await going
    except (SpdyError, OSError):
        pass  # one side has gone
    finally:
        writer.close()  # first: what ends this task may end the wait as well
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)


def insecure_context() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def add_node(server: ServerProcess, name: str, address: str, port: int) -> None:
    """Create a node with a kubelet at this address."""
    with server.client() as client:
        client.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        status = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        headers = {"Content-Type": "application/merge-patch+json"}
        code, body = client.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, headers)
        assert code == 200, body


def add_pod(server: ServerProcess, namespace: str, name: str, node: str = "n", ip: str = "", port: int = 0) -> None:
    """Create a running pod on a node, and its service account."""
    ports = [{"containerPort": port, "name": "web"}] if port else []
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "x", "ports": ports}]}
    with server.client() as client:
        client.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
        metadata = {"name": name, "labels": {"app": name}}
        code, body = client.request(
            "POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": spec}
        )
        assert code == 201, body
        status: dict[str, Any] = {"phase": "Running"}
        if ip:
            status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
        headers = {"Content-Type": "application/merge-patch+json"}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        code, body = client.request("PATCH", path, {"status": status}, headers)
        assert code == 200, body
