"""A TLS client that returns the certificates of both sides."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from steersman.net.message import Request, Response
from steersman.net.tls import Certificate


async def who(request: Request) -> Response:
    """Answer with the peer's certificate."""
    return Response(200, [], request.peer.certificate or b"none")


async def ask(server: Any, context: ssl.SSLContext, name: str = "localhost") -> tuple[bytes, bytes, str | None]:
    """Send one request; return its body, the server's certificate and the TLS version."""
    reader, writer = await asyncio.open_connection(*server.address, ssl=context, server_hostname=name)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 5)
    tls = writer.get_extra_info("ssl_object")
    certificate, version = tls.getpeercert(True), tls.version()
    writer.close()
    return answer.partition(b"\r\n\r\n")[2], certificate, version


def der(certificate: Certificate) -> bytes:
    """Return the DER bytes of a certificate file."""
    with open(certificate.cert_file) as file:
        return ssl.PEM_cert_to_DER_cert(file.read())
