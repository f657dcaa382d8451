"""Asks a server for one path again and again, in a process of its own; tells the longest wait when asked.

Arguments: host, port, CA file, token, path. Each line of standard input is answered by one line of JSON about the time
since the line before: {"longest", "asked", "failed"}, the wait in seconds. The wait of a ping under way is part of it.
"""

from __future__ import annotations

import json
import re
import select
import socket
import ssl
import sys
import time

_PAUSE = 0.01
_TIMEOUT = 120.0
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


class Probe:
    """One connection, opened again when it is lost."""

    def __init__(self, host: str, port: int, ca: str, token: str, path: str) -> None:
        self._address = (host, port)
        self._context = ssl.create_default_context(cafile=ca)
        head = (f"GET {path} HTTP/1.1", f"Host: {host}:{port}", f"Authorization: Bearer {token}", "\r\n")
        self._request = "\r\n".join(head).encode()
        self._connection: ssl.SSLSocket | None = None

    def ping(self) -> None:
        """One request. Raises OSError."""
        if self._connection is None:
            plain = socket.create_connection(self._address, _TIMEOUT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection = self._context.wrap_socket(plain, server_hostname=self._address[0])
        try:
            self._connection.sendall(self._request)
            answer = b""
            while not _is_whole(answer):
                part = self._connection.recv(4096)
                if not part:
                    raise ConnectionResetError("closed")
                answer += part
                if not b"HTTP/1.1 200".startswith(answer[:12]):
                    raise ConnectionResetError("refused")
        except OSError:
            self._connection.close()
            self._connection = None
            raise


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head + b"\r\n")
    return bool(end) and length is not None and len(body) >= int(length[1])


def main() -> None:
    host, port, ca, token, path = sys.argv[1:6]
    probe = Probe(host, int(port), ca, token, path)
    longest, asked, failed = 0.0, 0, 0
    while True:
        began = time.monotonic()
        try:
            probe.ping()
        except OSError:
            failed += 1
        longest = max(longest, time.monotonic() - began)
        asked += 1
        if select.select([sys.stdin], [], [], _PAUSE)[0]:
            if not sys.stdin.readline():
                return
            print(json.dumps({"longest": longest, "asked": asked, "failed": failed}), flush=True)
            longest, asked, failed = 0.0, 0, 0


if __name__ == "__main__":
    main()
