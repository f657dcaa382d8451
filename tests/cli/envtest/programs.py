"""The programs of `steersman envtest`, started as tools start them."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

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


TOKEN = "token-of-the-administrator"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Running:
    """A kube-apiserver, with requests by a token."""

    def __init__(self, program: Path, folder: Path, *flags: str) -> None:
        folder.mkdir(exist_ok=True)
        tokens = folder / "tokens.csv"
        tokens.write_text(f"{TOKEN},admin,admin,system:masters\n")
        self.certificates = folder / "certificates"
        self.port = free_port()
        self.process = subprocess.Popen(
            [
                program,
                f"--token-auth-file={tokens}",
                f"--cert-dir={self.certificates}",
                f"--secure-port={self.port}",
                "--bind-address=127.0.0.1",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                *flags,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def request(self, method: str, path: str, body: Any = None) -> Any:
        context = ssl.create_default_context(cafile=str(self.certificates / "apiserver.crt"))
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method)
        request.add_header("Authorization", f"Bearer {TOKEN}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.read()

    def wait_ready(self) -> None:
        until = time.monotonic() + 30
        while True:
            try:
                assert self.request("GET", "/healthz") == b"ok"
            except OSError:
                assert self.process.poll() is None, self.process.communicate()
                assert time.monotonic() < until
                time.sleep(0.02)
            else:
                return

    def refusal(self) -> str:
        """Return the line that a server prints if it does not start."""
        _, told = self.process.communicate(timeout=60)
        assert self.process.returncode == 1
        assert told.startswith("kube-apiserver: ")
        assert told.count("\n") == 1, told
        return told

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for each in (self.process.stdout, self.process.stderr):
            if each is not None:
                each.close()
