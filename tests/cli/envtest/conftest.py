"""Fixtures: the programs of `steersman envtest`, started as tools start them."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steersman.cli.envtest import assets

PATIENCE = 30.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


class Etcd:
    """The etcd on a folder."""

    def __init__(self, program: Path, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [program, f"--data-dir={folder}", f"--listen-client-urls={self.url}", *flags],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, method: str, path: str) -> tuple[int, bytes]:
        """Send a request; return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def wait_healthy(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                assert self.ask("GET", "/health") == (200, b'{"health":"true","reason":""}')
            except ConnectionRefusedError:
                assert self.process.poll() is None, "it has ended"
                assert time.monotonic() < until
                time.sleep(0.01)
            else:
                return

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for each in (self.process.stdout, self.process.stderr):
            if each is not None:
                each.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs."""
    return assets.make(tmp_path_factory.mktemp("envtest"))


@pytest.fixture
def make_etcd(programs: Path, tmp_path: Path) -> Iterator[Callable[..., Etcd]]:
    """Yield `make_etcd(*flags)`, which starts the etcd on tmp_path/"etcd" or another `folder`, killed after the
    test.
    """
    made: list[Etcd] = []

    def make(*flags: str, folder: Path | None = None) -> Etcd:
        made.append(Etcd(programs / "etcd", folder or tmp_path / "etcd", *flags))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def etcd(make_etcd: Callable[..., Etcd]) -> Etcd:
    """A healthy etcd."""
    made = make_etcd("--unsafe-no-fsync")
    made.wait_healthy()
    return made
