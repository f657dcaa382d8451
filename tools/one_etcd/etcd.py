"""One member of etcd, as a process."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Final, Self

from tools.stored_values.servers import free_port, program

_PATIENCE: Final = 60.0
"""Seconds in which it answers."""


class Etcd:
    """An etcd on a folder of its own, from `with` to the end of it. It does not wait for the disk: only an end of the
    machine could take what it has acknowledged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{free_port()}"

    def __enter__(self) -> Self:
        """Starts it. Raises LookupError without the program, OSError if it does not answer."""
        peer = f"http://127.0.0.1:{free_port()}"
        with self._folder.with_name(f"{self._folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program("etcd"),
                    f"--data-dir={self._folder}",
                    f"--listen-client-urls={self.url}",
                    f"--advertise-client-urls={self.url}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=default={peer}",
                    "--unsafe-no-fsync",
                    "--log-level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:
                    if b"true" in answer.read():
                        return self
            except OSError:
                if time.monotonic() > until:
                    self.__exit__()
                    raise
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
