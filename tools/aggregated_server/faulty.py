"""A server of faults.example.com/v1, by TLS: each object of it is another way to fail."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

GROUP: Final = "faults.example.com"
_LIST: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [{"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"]}],
}
_NOT_TOLD: Final = frozenset(
    {"audit-id", "x-forwarded-for", "x-remote-extra-authentication.kubernetes.io%2fcredential-id"}
)


def _answer(status: str, body: bytes, *fields: str, content_type: str = "text/plain") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


FAULTS: Final[dict[str, bytes]] = {
    "text": _answer("200 OK", b"some text", "X-Extra: 1", "Access-Control-Allow-Origin: *"),
    "created": _answer("201 Created", b"{}", "Location: /elsewhere"),
    "moved": _answer("302 Found", b"there", "Location: https://example.com/"),
    "not-modified": b'HTTP/1.1 304 Not Modified\r\nEtag: "a"\r\n\r\n',
    "no-location": _answer("302 Found", b"nowhere"),
    "bad-location": _answer("201 Created", b"", "Location: http://[::1"),
    "no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "teapot": _answer("418 I'm a teapot", b"short"),
    "unavailable": _answer("503 Service Unavailable", b"later", "Retry-After: 7"),
    "unauthorized": _answer("401 Unauthorized", b"who", "Www-Authenticate: Basic"),
    "page": _answer("200 OK", b"<a href='/x?a=1&b=2'>x</a><p CLASS=a>y", content_type="text/html"),
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
    "unasked-upgrade": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    "garbage": b"this is no HTTP\r\n\r\n",
    "hang-up": b"",
    "half-a-head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "bad-length": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "bad-code": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "strange-code": b"HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx",
    "cut-off": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc",
    "cut-chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "old": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end",
}


class FaultyServer:
    """Serves from `start` to `stop`, with a certificate and its key, in threads."""

    def __init__(self, address: str, certificate: Path, key: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._socket = socket.create_server((address, 0))
        self.port: int = self._socket.getsockname()[1]

    def start(self) -> None:
        """Begins."""
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Ends: nobody connects any more."""
        self._socket.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        with suppress(OSError, ValueError), self._context.wrap_socket(raw, server_side=True) as connection:
            while self._exchange(connection):
                pass

    def _exchange(self, connection: ssl.SSLSocket) -> bool:
        """Answers one request; whether the connection can carry another."""
        head = b""
        while b"\r\n\r\n" not in head:
            data = connection.recv(1 << 16)
            if not data:
                return False
            head += data
        head, _, body = head.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        found = dict(each.lower().split(": ", 1) for each in fields if ": " in each)
        length = int(found.get("content-length", "0"))
        while len(body) < length:
            body += connection.recv(1 << 16)
        method, target, _ = line.split(" ", 2)
        if target == f"/apis/{GROUP}/v1":
            connection.sendall(_answer("200 OK", json.dumps(_LIST).encode(), content_type="application/json"))
            return True
        kind = target.partition("?")[0].rpartition("/")[2]
        if kind in FAULTS:
            connection.sendall(FAULTS[kind])
            return False
        told = [
            f"{method} {target}",
            *sorted(each for each in fields if each.partition(":")[0].lower() not in _NOT_TOLD),
        ]
        host = found.get("host", "")
        text = "\n".join([*told, body.decode()]).replace(host, "HOST")
        connection.sendall(_answer("200 OK" if "/echo" in target else "404 Not Found", text.encode()))
        return True
