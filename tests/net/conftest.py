"""Fixtures: certificates, servers on real sockets, and clients that can send invalid data."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hpack import Decoder, Encoder

from steersman.net.http2 import frames
from steersman.net.http2.frames import Setting
from steersman.net.limits import Limits
from steersman.net.message import Handler
from steersman.net.tls import Certificate, ServerTLS
from tests.net.listening import ListeningServer

PATIENCE = 5.0


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], Any]]:
    """Use the event loop that the server uses."""
    return {"uvloop": uvloop.new_event_loop}


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """A CA in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            self._build(self.name, self.key.public_key())
            .add_extension(x509.BasicConstraints(True, None), True)
            .add_extension(_SIGNS, True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
        )
        self.file = folder / f"{name}.crt"
        self.file.write_bytes(certificate.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _build(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )

    def issue(self, name: str, *, client: bool = False, file: str | None = None) -> Certificate:
        """Issue a certificate for a host or a user, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        names = [x509.DNSName(name.replace(":", "-")), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            self._build(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key.public_key())
            .add_extension(x509.ExtendedKeyUsage([usage]), False)
            .add_extension(x509.SubjectAlternativeName(names), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
            .sign(self.key, hashes.SHA256())
        )
        base = self.folder / (file or name.replace(":", "-"))
        base.with_suffix(".pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        base.with_suffix(".key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return Certificate(str(base.with_suffix(".pem")), str(base.with_suffix(".key")))


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The CA that servers and clients trust."""
    return Authority(tmp_path_factory.mktemp("ca"), "authority")


@pytest.fixture(scope="session")
def certificate(authority: Authority) -> Certificate:
    """The server's certificate."""
    return authority.issue("localhost")


Serve = Callable[..., Awaitable[ListeningServer]]


@pytest_asyncio.fixture
async def serve(certificate: Certificate, authority: Authority) -> AsyncIterator[Serve]:
    """Start servers that end with the test; `server.address` is the address and `server.authority` the CA to trust."""
    servers: list[ListeningServer] = []

    async def start(
        handler: Handler, *, tls: bool | ServerTLS = False, limits: Limits | None = None, eager: bool = True
    ) -> ListeningServer:
        chosen = ServerTLS([certificate]) if tls is True else (tls or None)
        server = ListeningServer(handler, tls=chosen, limits=limits, eager=eager)
        server.address = await server.start("127.0.0.1", 0)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
def client_context(authority: Authority) -> Callable[..., ssl.SSLContext]:
    """Create client TLS contexts that trust the CA."""

    def make(*protocols: str, certificate: Certificate | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(authority.file))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        if certificate is not None:
            context.load_cert_chain(certificate.cert_file, certificate.key_file)
        return context

    return make


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Poll until a condition holds that has no notification."""

    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    return wait


@dataclass
class Frame:
    """A received frame."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


@dataclass
class Answer:
    """The answer on one stream."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(dict(self.headers)[":status"])


class RawHttp2:
    """An HTTP/2 client that sends any bytes and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.encoder = Encoder()
        self.decoder = Decoder()
        self.next_id = 1

    def hello(self, settings: dict[Setting, int] | None = None, *, window: int = 0) -> None:
        """Send preface and SETTINGS."""
        self.writer.write(frames.PREFACE + frames.settings(settings or {}))
        if window:
            self.writer.write(frames.window_update(0, window))

    def block(self, method: str = "GET", path: str = "/", *extra: tuple[str, str]) -> bytes:
        """Return the header block of a request."""
        fields = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path), *extra]
        return self.encoder.encode(fields)

    def request(self, method: str = "GET", path: str = "/", *extra: tuple[str, str], end: bool = True) -> int:
        """Send HEADERS and return the stream id."""
        stream_id, self.next_id = self.next_id, self.next_id + 2
        block = self.block(method, path, *extra)
        self.writer.write(frames.headers(stream_id, block, frames.END_STREAM if end else 0, 16384))
        return stream_id

    def data(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        """Send one DATA frame."""
        self.writer.write(frames.frame(frames.DATA, frames.END_STREAM if end else 0, stream_id, data))

    async def frame(self) -> Frame | None:
        """Return the next frame; None at the end of the connection."""
        try:
            head = await asyncio.wait_for(self.reader.readexactly(9), PATIENCE)
            length, flags, stream_id = frames.unpack_head(head, 0)
            payload = await asyncio.wait_for(self.reader.readexactly(length >> 8), PATIENCE)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return Frame(length & 0xFF, flags, stream_id, payload)

    async def until(self, kind: int, stream_id: int | None = None, *, ack: bool = False) -> Frame:
        """Return the next frame of a kind."""
        while (frame := await self.frame()) is not None:
            if frame.kind == kind and stream_id in (None, frame.stream_id) and (not ack or frame.flags & frames.ACK):
                return frame
        raise AssertionError(f"the connection ended without a frame of type {kind}")

    async def goaway(self) -> int:
        """Wait for GOAWAY and return its error code."""
        return int.from_bytes((await self.until(frames.GOAWAY)).payload[4:8])

    async def reset(self, stream_id: int) -> int:
        """Wait for RST_STREAM and return its error code."""
        return int.from_bytes((await self.until(frames.RST_STREAM, stream_id)).payload)

    async def answers(self, *streams: int, credit: bool = True) -> dict[int, Answer]:
        """Read until all of the streams are answered or reset, with flow control credit returned meanwhile."""
        out = {stream_id: Answer() for stream_id in streams}
        left = set(streams)
        while left:
            frame = await self.frame()
            if frame is None:
                raise AssertionError("the connection ended")
            answer = out.get(frame.stream_id)
            if frame.kind == frames.HEADERS:
                fields = [(str(name), str(value)) for name, value in self.decoder.decode(frame.payload)]
                if answer is not None:
                    answer.headers += fields
            elif frame.kind == frames.DATA and frame.payload:
                if answer is not None:
                    answer.body += frame.payload
                if credit:
                    self.writer.write(frames.window_update(0, len(frame.payload)))
                    self.writer.write(frames.window_update(frame.stream_id, len(frame.payload)))
            elif frame.kind == frames.RST_STREAM and answer is not None and frame.stream_id in left:
                answer.reset = int.from_bytes(frame.payload)
                left.discard(frame.stream_id)
            if frame.kind in (frames.HEADERS, frames.DATA) and frame.flags & frames.END_STREAM:
                left.discard(frame.stream_id)
        return out

    async def answer(self, stream_id: int) -> Answer:
        """Return the answer on one stream."""
        return (await self.answers(stream_id))[stream_id]

    async def ping(self) -> None:
        """Wait until the server has processed everything sent so far."""
        self.writer.write(frames.frame(frames.PING, 0, 0, b"01234567"))
        await self.until(frames.PING, ack=True)

    async def ended(self) -> None:
        """Wait for the end of the connection."""
        while await self.frame() is not None:
            pass

    def close(self) -> None:
        self.writer.close()


@pytest_asyncio.fixture
async def http2(client_context: Callable[..., ssl.SSLContext]) -> AsyncIterator[Callable[..., Awaitable[RawHttp2]]]:
    """Connect raw HTTP/2 clients, plain or over TLS."""
    clients: list[RawHttp2] = []

    async def connect(
        server: ListeningServer,
        *,
        tls: bool = False,
        settings: dict[Setting, int] | None = None,
        window: int = 0,
        hello: bool = True,
    ) -> RawHttp2:
        context = client_context("h2") if tls else None
        reader, writer = await asyncio.open_connection(*server.address, ssl=context)
        client = RawHttp2(reader, writer)
        if hello:
            client.hello(settings, window=window)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


class RawHttp1:
    """An HTTP/1.1 client that sends any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the next response, with names in lower case."""
        raw = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode()
        line, *fields = raw.split("\r\n")[:-2]
        headers = {}
        for item in fields:
            name, _, value = item.partition(": ")
            headers[name.lower()] = value
        return int(line.split(" ")[1]), headers

    async def chunk(self) -> bytes:
        """Return the next chunk of a chunked body, b"" for the last."""
        size = int(await asyncio.wait_for(self.reader.readline(), PATIENCE), 16)
        return (await asyncio.wait_for(self.reader.readexactly(size + 2), PATIENCE))[:-2]

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        """Return the next response, complete."""
        status, headers = await self.head()
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while piece := await self.chunk():
                body += piece
            return status, headers, body
        if "content-length" in headers:
            size = int(headers["content-length"])
            return status, headers, await asyncio.wait_for(self.reader.readexactly(size), PATIENCE)
        return status, headers, b"" if status in (100, 204, 304) else await self.rest()

    async def rest(self) -> bytes:
        """Return all bytes until the connection ends."""
        return await asyncio.wait_for(self.reader.read(), PATIENCE)

    def close(self) -> None:
        self.writer.close()


@pytest_asyncio.fixture
async def http1(client_context: Callable[..., ssl.SSLContext]) -> AsyncIterator[Callable[..., Awaitable[RawHttp1]]]:
    """Connect raw HTTP/1.1 clients, plain or over TLS."""
    clients: list[RawHttp1] = []

    async def connect(server: ListeningServer, *, tls: bool = False) -> RawHttp1:
        context = client_context("http/1.1") if tls else None
        client = RawHttp1(*await asyncio.open_connection(*server.address, ssl=context))
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()
