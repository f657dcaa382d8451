"""Serves fixed answers over TLS, so that an HTTP load generator can measure what the transport alone costs.

Prints one JSON line (url, ca, token, pids) when it serves, and ends on SIGTERM. A GET of one object is answered with
3.7 KB; a list of namespace `NAME-1000` with 1000 of them; an object that is PUT goes to all watchers as an event.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import ipaddress
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.net.message import BodyWriter, Handler, Request, Response
from steersman.net.server import HttpServer
from steersman.net.tls import Certificate, ServerTLS

OBJECT = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod","namespace":"default","uid":"1","resourceVersion":"1",'
    b'"annotations":{"padding":"' + b"x" * 3500 + b'"}}}'
)
JSON = [
    ("content-type", "application/json"),
    ("cache-control", "no-cache, private"),
    ("x-kubernetes-pf-flowschema-uid", "5b0f5b3c-7e3a-4c6f-8a2e-3f1d2c4b5a69"),
    ("x-kubernetes-pf-prioritylevel-uid", "0f0f5b3c-7e3a-4c6f-8a2e-3f1d2c4b5a69"),
]


class Watchers:
    """All open watches: each gets every event."""

    def __init__(self) -> None:
        self.writers: set[BodyWriter] = set()

    def send(self, body: bytes) -> None:
        """One event to all."""
        event = b'{"type":"MODIFIED","object":' + body + b"}\n"
        for writer in self.writers:
            writer.write(event)


class Watch:
    """One watch."""

    def __init__(self, watchers: Watchers) -> None:
        self.watchers = watchers
        self.writer: BodyWriter | None = None

    def start(self, writer: BodyWriter) -> None:
        """Begins to get events."""
        self.writer = writer
        self.watchers.writers.add(writer)

    def closed(self) -> None:
        """Gets no more."""
        if self.writer is not None:
            self.watchers.writers.discard(self.writer)


def make_handler(watchers: Watchers) -> Handler:
    """Answers by the shape of the path."""
    lists: dict[int, list[bytes]] = {}

    async def handler(request: Request) -> Response:
        if "watch" in request.query:
            return Response(200, JSON, Watch(watchers))
        if request.path.endswith(("/pods", "/configmaps")) and request.method == "GET":
            size = request.path.rpartition("/")[0].rpartition("-")[2]
            count = int(size) if size in ("1000", "10000") else 1000
            if count not in lists:
                item = OBJECT + b","
                lists[count] = [
                    b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[',
                    *[item] * (count - 1),
                    OBJECT,
                    b"]}",
                ]
            return Response(200, JSON, lists[count])
        if request.method != "GET":
            body = await request.body.read(3 << 20)
            if request.method == "PUT":
                watchers.send(body)
        return Response(200, JSON, OBJECT)

    return handler


def make_certificate(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1; paths of certificate and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "tls.crt", folder / "tls.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(certificate_file), str(key_file)


async def main() -> None:
    """Serves until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-eager", action="store_true", help="a task for every request")
    parser.add_argument("--plain", action="store_true", help="no TLS")
    arguments = parser.parse_args()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory() as folder:
        certificate_file, key_file = make_certificate(Path(folder))
        tls = None if arguments.plain else ServerTLS([Certificate(certificate_file, key_file)])
        server = HttpServer(make_handler(Watchers()), tls=tls, eager=not arguments.no_eager)
        host, port = await server.start("127.0.0.1", arguments.port)
        scheme = "http" if arguments.plain else "https"
        ready = {"url": f"{scheme}://{host}:{port}", "ca": certificate_file, "token": "none"}
        print(json.dumps({**ready, "pids": {"server": os.getpid()}}), flush=True)
        await stop.wait()
        await server.drain(1.0)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main()))
