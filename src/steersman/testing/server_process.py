"""A server as users run it: `steersman serve`, or `up`, in a process of its own."""

from __future__ import annotations

import os
import selectors
import signal
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from steersman.testing.blocking_client import BlockingClient
from steersman.work.patterns import late_pattern

START_TIMEOUT: Final = 30.0
STOP_TIMEOUT: Final = 30.0
WITHOUT_ACCOUNTS: Final = "--disable-admission-plugins=ServiceAccount"
"""Flag that lets pods be created although no controller creates service accounts; test environments use it."""
_READY: Final = late_pattern(r"ready url=(\S+) kubeconfig=(\S+) ca=(\S+)")


class ServerNotReady(Exception):
    """The server ended, or printed nothing, before it was ready. The text has its output."""


class ServerProcess:
    """`steersman serve` on one data folder; it can be started again after it has ended.

    `with ServerProcess(folder, *flags) as server` starts it, and stops it at the end. It listens on 127.0.0.1 and a
    free port. `url`, `kubeconfig` (the administrator's) and `ca` are taken from its ready line. Its stderr is appended
    to the file `errors` beside the folder. Times are in seconds.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        verb: str = "serve",
        under: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Configure a process without starting it.

        `verb` is the command: `up` for a whole cluster. `under` is a command that executes the server, as `env` does.
        `environment` is added to the environment of this process.
        """
        self.folder = folder
        self.verb = verb
        self.flags = flags
        self._under = under
        self._environment = environment or {}
        self.errors = folder.with_name(folder.name + ".stderr")
        self.url = ""
        self.kubeconfig = self.ca = Path()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            try:
                self.stop()
            finally:
                self.kill()

    @property
    def pid(self) -> int:
        """ID of the process that runs, or ran last."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = START_TIMEOUT) -> float:
        """Start it, wait until it is ready, and return the seconds that took. Raises ServerNotReady."""
        began = time.monotonic()
        self.launch()
        self.wait_ready(timeout)
        return time.monotonic() - began

    def launch(self) -> None:
        """Start it without waiting."""
        arguments = [f"--data-dir={self.folder}", "--secure-port=0", "--bind-address=127.0.0.1", *self.flags]
        inherited = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*self._under, sys.executable, "-c", "from steersman.cli import main; main()", self.verb, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**inherited, **self._environment},
            )

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Wait for the ready line and parse it. Raises ServerNotReady."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(timeout) else ""
        match = _READY.match(line)
        if match is None:
            self.kill()
            raise ServerNotReady(f"said {line!r}; {self.errors.read_text()[-2000:]}")
        self.url = match[1]
        self.kubeconfig, self.ca = Path(match[2]), Path(match[3])

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, timeout: float = STOP_TIMEOUT) -> int:
        """Wait until it ends, and return its exit code, negative for a signal. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        code = self._process.wait(timeout)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def stop(self) -> int:
        """Stop it by SIGTERM, and return its exit code. Raises subprocess.TimeoutExpired after STOP_TIMEOUT."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill it by SIGKILL, and wait until the process is gone."""
        if self.running:
            self.signal(signal.SIGKILL)
        if self._process is not None:
            self.wait()

    def resident_bytes(self) -> int:
        """Return its resident memory in bytes (Linux)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urllib.parse.urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def context(self, *, admin: bool = True, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
        """Return a TLS context for its clients, with the administrator's certificate or without any."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if admin:
            context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def client(self, *, admin: bool = True, timeout: float = 10.0) -> BlockingClient:
        """Return a client with a connection of its own, for the administrator or anonymous."""
        return BlockingClient(self.address, self.context(admin=admin), timeout)
