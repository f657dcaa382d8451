"""Suite of tests that starts a server from KUBEBUILDER_ASSETS, and the careless operator in a thread of its own.

It fails if the Secret has no token within a few seconds.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.stress.copying_operator import NAMESPACE, Api, work


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def api_of(certificate: Path, port: int, agent: str) -> Api:
    """Return a client of the server."""
    return Api(f"https://127.0.0.1:{port}", certificate.read_text(), "sesame", agent)


def run(folder: Path, programs: list[subprocess.Popen[bytes]]) -> int:
    """Return the exit code of the suite. `programs` receives what it starts."""
    assets, store, port = Path(os.environ["KUBEBUILDER_ASSETS"]), free_port(), free_port()
    url = f"http://127.0.0.1:{store}"
    etcd = (assets / "etcd", f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={url}")
    server = (
        assets / "kube-apiserver",
        f"--etcd-servers={url}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--token-auth-file={folder / 'tokens.csv'}",
    )
    (folder / "tokens.csv").write_text('sesame,admin,admin,"system:masters"\n')
    for each in (etcd, server):
        programs.append(subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=sys.stderr))
    certificate = folder / "apiserver.crt"
    until = time.monotonic() + 60
    while not certificate.exists() or not (api := api_of(certificate, port, "suite")).is_ready():
        if time.monotonic() > until or programs[1].poll() is not None:
            return 2
        time.sleep(0.05)
    operator = api_of(certificate, port, "copier")
    threading.Thread(target=work, args=(operator,), kwargs={"careless": True}, daemon=True).start()
    api.request("POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "a", "labels": {"copy": ""}}})
    until = time.monotonic() + 5
    while time.monotonic() < until:
        secret = api.find(f"{NAMESPACE}/secrets/a")
        if secret is not None and "token" in (secret.get("data") or {}):
            return 0
        time.sleep(0.02)
    print("the Secret has no token")
    return 1


if __name__ == "__main__":
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as name:
        try:
            code = run(Path(name), started)
        finally:
            for each in reversed(started):
                each.send_signal(signal.SIGTERM)
                each.wait()
    sys.exit(code)
