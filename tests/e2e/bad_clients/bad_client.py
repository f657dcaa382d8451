"""Clients that misbehave on real sockets, and a probe that measures how another client is served meanwhile."""

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
"""Seconds until a refused connection is closed. The server lingers first, so that the client can read the reason."""
SERVED_WITHIN = 8.0
"""Seconds within which every probe must be answered.

The server takes a small fraction of them. The machine may be busy, and a successful attack would take far longer.
"""


class BadClient:
    """TLS connection, authenticated or not, that sends any bytes."""

    def __init__(self, server: ServerProcess, *, admin: bool = True, alpn: tuple[str, ...] = ()) -> None:
        raw = socket.create_connection(server.address, timeout=PATIENCE)
        self._socket = server.context(admin=admin, alpn=alpn).wrap_socket(raw, server_hostname=server.address[0])

    def send(self, data: bytes) -> bool:
        """Send bytes. Return False if the server has closed the connection."""
        try:
            self._socket.sendall(data)
        except (ConnectionError, ssl.SSLError):
            return False
        return True

    def receive(self, size: int = 65536) -> bytes:
        """Return the next bytes, b"" at the end of the connection. Raises TimeoutError if nothing arrives."""
        try:
            return self._socket.recv(size)
        except (ConnectionError, ssl.SSLError):
            return b""

    def rest(self) -> bytes:
        """Return all bytes until the server closes the connection. Raises TimeoutError if it does not."""
        pieces = []
        while piece := self.receive():
            pieces.append(piece)
        return b"".join(pieces)

    def send_until_closed(self, make: Callable[[int], bytes], seconds: float = CUT_OFF) -> None:
        """Send `make(0)`, `make(1)`, ... until the server closes the connection; fail if it does not in time."""
        deadline = time.monotonic() + seconds
        number = 0
        while self.send(make(number)):
            number += 1
            assert time.monotonic() < deadline, f"the server goes along for {seconds} s"

    def close(self) -> None:
        self._socket.close()


class Pulse:
    """Probe that requests /livez again and again on its own connection."""

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
        """Fail unless every probe was answered in time."""
        assert self.failure is None, f"a proper client was not served: {self.failure!r}"
        assert 0 < self.slowest < SERVED_WITHIN, f"a probe took {self.slowest * 1000:.0f} ms"


@contextlib.contextmanager
def others_are_served(server: ServerProcess) -> Iterator[Pulse]:
    """Fail unless another client's requests are answered in time while the block runs."""
    with Pulse(server) as pulse:
        yield pulse
    pulse.check()


@contextlib.contextmanager
def memory_grows_at_most(server: ServerProcess, mebibytes: float) -> Iterator[None]:
    """Fail if the server's resident memory grows by more than `mebibytes` during the block."""
    before = server.resident_bytes()
    yield
    grown = (server.resident_bytes() - before) / (1 << 20)
    assert grown < mebibytes, f"resident memory grew by {grown:.0f} MiB"


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Poll until a condition holds that nothing announces."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
