"""Clients that do what no proper client would, on real sockets, while another one measures how it is served."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

from steersman.testing import ServerProcess

PATIENCE = 10.0
CUT_OFF = 12.0
"""Seconds after which a connection that was refused is closed: it lingers first, so that the client sees why."""
SERVED_WITHIN = 8.0
"""Seconds in which every probe must be answered: many times what the server takes, as the machine may have other work,
and a small part of what an attack that works would take."""


class BadClient:
    """A TLS connection, authenticated or not, that sends any bytes."""

    def __init__(self, server: ServerProcess, *, admin: bool = True, alpn: tuple[str, ...] = ()) -> None:
        raw = socket.create_connection(server.address, timeout=PATIENCE)
        self._socket = server.context(admin=admin, alpn=alpn).wrap_socket(raw, server_hostname=server.address[0])

    def send(self, data: bytes) -> bool:
        """Sends; whether the server still took it."""
        try:
            self._socket.sendall(data)
        except (ConnectionError, ssl.SSLError):
            return False
        return True

    def receive(self, size: int = 65536) -> bytes:
        """What comes next, b"" at the end of the connection. Raises TimeoutError if nothing does."""
        try:
            return self._socket.recv(size)
        except (ConnectionError, ssl.SSLError):
            return b""

    def rest(self) -> bytes:
        """All until the server closes. Raises TimeoutError if it does not."""
        pieces = []
        while piece := self.receive():
            pieces.append(piece)
        return b"".join(pieces)

    def send_until_closed(self, make: Callable[[int], bytes], seconds: float = CUT_OFF) -> None:
        """Sends `make(0)`, `make(1)`, ... until the server closes the connection; fails if it does not in time."""
        deadline = time.monotonic() + seconds
        number = 0
        while self.send(make(number)):
            number += 1
            assert time.monotonic() < deadline, f"the server goes along for {seconds} s"

    def close(self) -> None:
        self._socket.close()


class Pulse:
    """Asks for /livez again and again on a connection of its own."""

    def __init__(self, server: ServerProcess) -> None:
        self._client = server.client(admin=False)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.slowest = 0.0
        """Seconds that the slowest answer took; 0 before the first."""
        self.failure: Exception | None = None

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            while True:
                began = time.perf_counter()
                status, _ = self._client.request("GET", "/livez")
                assert status == 200
                self.slowest = max(self.slowest, time.perf_counter() - began)
                if self._stop.wait(0.01):
                    return
        except Exception as error:
            self.failure = error

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def check(self) -> None:
        """Fails unless every probe was answered in time."""
        assert self.failure is None, f"a proper client was not served: {self.failure!r}"
        assert 0 < self.slowest < SERVED_WITHIN, f"a probe took {self.slowest * 1000:.0f} ms"


@contextlib.contextmanager
def others_are_served(server: ServerProcess) -> Iterator[Pulse]:
    """While the block runs, another client's requests are answered in time."""
    with Pulse(server) as pulse:
        yield pulse
    pulse.check()


@contextlib.contextmanager
def memory_grows_at_most(server: ServerProcess, mebibytes: float) -> Iterator[None]:
    """The server's resident memory grows by no more than so much over the block."""
    before = server.resident_bytes()
    yield
    grown = (server.resident_bytes() - before) / (1 << 20)
    assert grown < mebibytes, f"resident memory grew by {grown:.0f} MiB"


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Waits for what nothing announces."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
