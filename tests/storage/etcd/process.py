"""An etcd process for tests, if the program is found in $STEERSMAN_REFERENCE or in PATH."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Final

import pytest

_START_SECONDS: Final = 30


def program(name: str = "etcd") -> str:
    """Return the path of etcd, or of another program of etcd's; skips the test if there is none."""
    folder = os.environ.get("STEERSMAN_REFERENCE", "")
    path = shutil.which(name, path=os.pathsep.join(filter(None, (folder, os.environ.get("PATH", "")))))
    if path is None:
        pytest.skip(f"there is no {name}: `make etcd` builds it")
    return path


def free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return int(each.getsockname()[1])


class EtcdProcess:
    """One member with its own folder. It must be stopped."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.port, self._peer_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        peer = f"http://127.0.0.1:{self._peer_port}"
        self._process = subprocess.Popen(
            (
                program(),
                "--data-dir",
                str(self.folder),
                "--listen-client-urls",
                self.url,
                "--advertise-client-urls",
                self.url,
                "--listen-peer-urls",
                peer,
                "--initial-advertise-peer-urls",
                peer,
                "--initial-cluster",
                f"default={peer}",
                "--unsafe-no-fsync",
                "--log-level",
                "error",
                "--max-request-bytes",
                str(16 << 20),
                *self._flags,
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=1) as answer:
                    if b"true" in answer.read():
                        return
            except OSError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.02)

    def pause(self) -> None:
        """Suspend the process: it answers nothing, and connections stay open."""
        self._signal(signal.SIGSTOP)
        assert self._process is not None
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self) -> None:
        """Ends a pause."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """Ends it, if it runs."""
        if self._process is not None:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
