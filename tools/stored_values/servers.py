"""The two servers, each with an empty store that can be read: kube-apiserver on etcd, and ours on its SQLite file."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tools.differential.server import Client

_TOKEN: Final = "admin-token"
_USUAL: Final = (
    "--authorization-mode=RBAC",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--allow-privileged=true",
    "--disable-admission-plugins=ServiceAccount",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    "--bind-address=127.0.0.1",
    "--advertise-address=192.0.2.1",
)
_PATIENCE: Final = 120.0
"""Seconds in which a server is ready."""
_PAGE: Final = 500


class StoringServer(Protocol):
    """A server from `with` to the end of it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    @property
    def client(self) -> Client:
        """Asks it as its administrator."""
        ...

    def contents(self) -> dict[str, bytes]:
        """Everything it has stored, by keys."""
        ...


def program(name: str) -> str:
    """In the folder that $STEERSMAN_REFERENCE names, or in PATH. Raises LookupError."""
    for folder in (os.environ.get("STEERSMAN_REFERENCE"), os.environ.get("PATH")):
        if folder and (path := shutil.which(name, path=folder)):
            return path
    raise LookupError(f"no {name}: put one in PATH, or in the folder that $STEERSMAN_REFERENCE names")


class Reference:
    """kube-apiserver, in `folder`, at a port, as objects name it; on an etcd of its own unless one is given."""

    client: Client

    def __init__(self, folder: Path, port: int, flags: Sequence[str], etcd: str = "") -> None:
        self._folder = folder
        self._port = port
        self._flags = flags
        self._running = ExitStack()
        self._has_own_etcd = not etcd
        self._etcd = etcd or f"http://127.0.0.1:{free_port()}"

    def __enter__(self) -> Self:
        folder = self._folder
        folder.mkdir(parents=True)
        key, serving, certificate = folder / "sa.key", folder / "tls.key", folder / "tls.crt"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-keyout",
                str(serving),
                "-out",
                str(certificate),
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ],
            check=True,
            capture_output=True,
        )
        if self._has_own_etcd:
            self._start_etcd()
        self._start(
            [
                program("kube-apiserver"),
                f"--etcd-servers={self._etcd}",
                f"--secure-port={self._port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={serving}",
                f"--token-auth-file={_tokens(folder)}",
                f"--service-account-signing-key-file={key}",
                f"--service-account-key-file={key}",
                *_USUAL,
                *self._flags,
            ]
        )
        self.client = Client(f"https://127.0.0.1:{self._port}", str(certificate), _TOKEN)
        self._running.callback(self.client.close)
        _wait_for(lambda: _is_ready(self.client), folder / "kube-apiserver.log")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.close()

    def _start_etcd(self) -> None:
        peer = f"http://127.0.0.1:{free_port()}"
        self._start(
            [
                program("etcd"),
                f"--data-dir={self._folder}/etcd",
                f"--listen-client-urls={self._etcd}",
                f"--advertise-client-urls={self._etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
            ]
        )

    def _start(self, command: list[str]) -> None:
        log = self._running.enter_context((self._folder / f"{Path(command[0]).name}.log").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self._running.callback(process.wait)
        self._running.callback(process.kill)

    def contents(self) -> dict[str, bytes]:
        """Everything in etcd, read page by page by its HTTP gateway."""
        found: dict[str, bytes] = {}
        start, more = b"\0", True
        while more:
            page = self._range(start)
            items = page.get("kvs", [])
            assert isinstance(items, list)
            for item in items:
                key = base64.b64decode(item["key"])
                found[key.decode()] = base64.b64decode(item.get("value", ""))
                start = key + b"\0"
            more = bool(page.get("more"))
        return found

    def _range(self, start: bytes) -> dict[str, object]:
        asked = {"key": _base64(start), "range_end": _base64(b"\0"), "limit": _PAGE}
        request = urllib.request.Request(f"{self._etcd}/v3/kv/range", json.dumps(asked).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            page: dict[str, object] = json.load(answer)
            return page


class Ours:
    """`steersman serve` with SQLite, in `folder`."""

    client: Client

    def __init__(self, folder: Path, port: int, flags: Sequence[str]) -> None:
        self._folder = folder
        self._port = port
        self._flags = flags
        self._running = ExitStack()

    def __enter__(self) -> Self:
        folder = self._folder
        folder.mkdir(parents=True)
        command = [
            str(Path(sys.executable).with_name("steersman")),
            "serve",
            f"--data-dir={folder}/data",
            f"--secure-port={self._port}",
            f"--token-auth-file={_tokens(folder)}",
            *_USUAL,
            *self._flags,
        ]
        log = self._running.enter_context((folder / "steersman.log").open("wb"))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._running.callback(process.wait)
        self._running.callback(process.terminate)
        assert process.stdout is not None
        self._running.callback(process.stdout.close)
        line = process.stdout.readline()
        if not line.startswith("ready "):
            raise RuntimeError((folder / "steersman.log").read_text()[-3000:])
        said = dict(pair.split("=", 1) for pair in line.split()[1:])
        self.client = Client(said["url"], said["ca"], _TOKEN)
        self._running.callback(self.client.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.close()

    def contents(self) -> dict[str, bytes]:
        """The newest row of each key that is not one of a deletion."""
        with closing(sqlite3.connect(f"file:{self._folder}/data/steersman.db?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT key, value FROM log ORDER BY revision")
            return {key: bytes(value) for key, value in dict(rows).items() if value is not None}


def _tokens(folder: Path) -> Path:
    file = folder / "tokens.csv"
    file.write_text(f"{_TOKEN},admin,admin,system:masters\n")
    return file


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_ready(client: Client) -> bool:
    try:
        return client.ask("GET", "/readyz").code == 200
    except OSError:
        client.close()
        return False


def _wait_for(done: object, log: Path) -> None:
    """Raises TimeoutError with the end of the log."""
    assert callable(done)
    for _ in range(int(_PATIENCE * 10)):
        if done():
            return
        time.sleep(0.1)
    raise TimeoutError(log.read_text()[-3000:])


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
