"""The server that is measured: its start, processor time and memory, what held its loop, what small requests wait."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, Final

from bench.at_size.network import Network
from bench.first_list import cpu_ms

TOKEN: Final = "admin-token"
_HELD: Final = re.compile(r"held for ([\d.]+) s \(its thread ran ([\d.]+) s.* looks in (\S+): (.*)")
_PROBE_EVERY: Final = 0.05
_LEAST: Final = 0.01
"""Seconds that the thread of the loop has to have run: the clock alone would count what others do on the machine."""


@dataclass
class Hold:
    """A hold of the event loop: seconds by the clock, seconds of processor time, and the function."""

    seconds: float
    ran: float
    where: str
    stack: str


@dataclass
class Waits:
    """Milliseconds that small requests took, one after another, and how they were answered."""

    taken: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.taken:
            return "none"
        ordered = sorted(self.taken)
        p99 = ordered[len(ordered) * 99 // 100]
        wrong = {code: count for code, count in self.statuses.items() if code != 200}
        text = f"{ordered[len(ordered) // 2]:.1f} / {p99:.0f} / {ordered[-1]:.0f}"
        return text + (f" ({', '.join(f'{count} of {code}' for code, count in wrong.items())})" if wrong else "")


class Server:
    """`steersman serve` on a folder; on an etcd that it has a network to."""

    def __init__(self, folder: Path, network: Network | None, flags: list[str]) -> None:
        self.folder = folder
        self.network = network
        self.log = folder / "server.log"
        self.process: subprocess.Popen[str] | None = None
        self.port = 0
        self.ready_seconds = 0.0
        self._ca = ""
        tokens = folder / "tokens.csv"
        with open(os.open(tokens, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f'{TOKEN},admin,admin,"system:masters"\n')
        command = os.environ.get("STEERSMAN") or str(Path(sys.executable).with_name("steersman"))
        self._command = [
            command,
            "serve",
            f"--data-dir={folder}/data",
            "--secure-port=0",
            "--bind-address=127.0.0.1",
            f"--token-auth-file={tokens}",
            "--disable-admission-plugins=ServiceAccount",
            "--storage-initialization-timeout=10m",
            *([f"--etcd-servers={network.url}"] if network else []),
            *flags,
        ]

    def start(self) -> None:
        """Returns once it is ready. Raises RuntimeError if it ends instead."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            raise RuntimeError(f"the server has not started: see {self.log}")
        self.ready_seconds = time.monotonic() - began
        told = dict(pair.split("=", 1) for pair in line.split()[1:])
        self.port = int(told["url"].rpartition(":")[2])
        self._ca = told["ca"]

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(120)
            self.process = None

    # Costs

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        return cpu_ms([self.pid]) / 1000

    def _memory(self, name: str) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition(f"{name}:")[2].split()[0]) / 1024

    def resident(self) -> float:
        """MiB of its resident set."""
        return self._memory("VmRSS")

    def peak(self) -> float:
        """MiB that the resident set had at most since `forget_peak`."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def holds(self, since: int) -> list[Hold]:
        """Return holds of 10 ms and more in the log from a byte on, the longest first."""
        with self.log.open("rb") as file:
            file.seek(since)
            text = file.read().decode(errors="replace")
        found = [Hold(float(a), float(b), c, d) for a, b, c, d in _HELD.findall(text) if float(b) >= _LEAST]
        return sorted(found, key=lambda each: -each.ran)

    def log_size(self) -> int:
        return self.log.stat().st_size

    # Requests

    def context(self) -> ssl.SSLContext:
        """TLS that trusts it."""
        context = ssl.create_default_context(cafile=self._ca)
        context.check_hostname = False
        return context

    def call(self, path: str, body: Any = None, method: str | None = None) -> tuple[bytes, float]:
        """The answer to a request, whole, and the seconds it took. Raises urllib.error.HTTPError."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, headers, method=method)
        began = time.monotonic()
        with urllib.request.urlopen(request, context=self.context(), timeout=600) as answer:
            return answer.read(), time.monotonic() - began

    def watches(self, resource: str) -> float:
        """Return the number of running watches of a resource."""
        text = self.call("/metrics")[0].decode()
        found = [line for line in text.splitlines() if line.startswith("apiserver_longrunning_requests{")]
        return sum(
            float(line.rpartition(" ")[2])
            for line in found
            if f'resource="{resource}"' in line and 'verb="WATCH"' in line
        )

    def waits(self) -> bool:
        """Return True if its largest cache cannot be read now."""
        try:
            self.call("/api/v1/namespaces/default/events?limit=1")
        except urllib.error.HTTPError:
            return True
        return False

    def size_of(self, path: str) -> tuple[int, float]:
        """The bytes of an answer that is thrown away as it comes, and the seconds it took."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        began, size = time.monotonic(), 0
        with urllib.request.urlopen(request, context=self.context(), timeout=600) as answer:
            while piece := answer.read(1 << 20):
                size += len(piece)
        return size, time.monotonic() - began


class Probe:
    """Asks for something small again and again, on a connection of its own, in a thread."""

    def __init__(self, server: Server, path: str) -> None:
        self._server = server
        self._path = path
        self.waits = Waits()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Waits:
        self._thread.start()
        return self.waits

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        connection = HTTPSConnection("127.0.0.1", self._server.port, context=self._server.context(), timeout=120)
        while not self._over.is_set():
            began = time.monotonic()
            try:
                connection.request("GET", self._path, headers={"Authorization": f"Bearer {TOKEN}"})
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except OSError:
                connection.close()
                status = 0
            self.waits.taken.append((time.monotonic() - began) * 1000)
            self.waits.statuses[status] = self.waits.statuses.get(status, 0) + 1
            self._over.wait(_PROBE_EVERY)
        connection.close()
