"""A server under attack: started by a command, watched from outside, started again when it does not come back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from .case import ADMIN, CROWD, CROWDED, NAMESPACE, NARROW, OTHER, Message, Request
from .sending import Answer, Endpoint, send
from .series import served, strange

START_TIMEOUT: Final = 120.0
STOP_TIMEOUT: Final = 20.0
_ORDINARY_TIMEOUT: Final = 60.0
_BASELINE: Final = 1.0
"""Seconds in which it is found out what being probed costs."""
_SETTLING: Final = 0.02
_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")
_HELD: Final = re.compile(
    r"the loop was held for ([\d.]+) s \(its thread ran ([\d.]+) s, the process ([\d.]+) s, collecting garbage "
    r"([\d.]+) s\) by (.*?): (\d+) of (\d+) looks in (\S+): (.*)"
)
_STILL_HELD: Final = re.compile(r"the loop is held for ([\d.]+) s by now by (.*?): in (\S+): (.*)")


@dataclass(frozen=True)
class Hold:
    """One line of the server's watchdog. `seconds` of the clock, `cpu` what of it the process really worked."""

    seconds: float
    cpu: float
    where: str
    stack: str


@dataclass(frozen=True)
class Measured:
    """Effects of one message on a server, in seconds.

    `wait` is the probe's longest wait, `other` that of a user without a part in the attack. `turned_away` is the number
    of this other user's requests that were not answered with 200.
    """

    codes: tuple[int, ...]
    seconds: float
    wait: float
    cpu: float
    holds: tuple[Hold, ...] = ()
    late: bool = False
    died: bool = False
    other: float = 0.0
    turned_away: int = 0

    @property
    def held(self) -> Hold | None:
        return max(self.holds, key=lambda each: each.cpu, default=None)

    @property
    def broken(self) -> bool:
        """Return True if the server must be started again."""
        return self.late or self.died


class ServerGone(Exception):
    """The server does not start, or cannot be prepared."""


class AttackedServer:
    """A server in the foreground of a command, from `with` to the end of it."""

    def __init__(self, command: str, *, timeout: float, crowd: bool) -> None:
        self._command = command
        self._timeout = timeout
        self._crowd = crowd
        self._folder = tempfile.TemporaryDirectory(prefix="hostile-")
        self._log = Path(self._folder.name) / "stderr"
        self._read = 0
        self._process: subprocess.Popen[str] | None = None
        self._probes: list[subprocess.Popen[str]] = []
        """Probes of the event loop and of another user."""
        self._pids: list[int] = []
        self._endpoint = Endpoint("", 0, "")
        self._ping_cpu = 0.0
        """Seconds that a ping, and the request of the other user beside it, take."""
        self._watched = False
        self._known: dict[str, dict[str, Any]] = {}
        self.restarts = 0

    def __enter__(self) -> AttackedServer:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()
        self._folder.cleanup()

    # Needs of cases

    def ask(self, request: Request) -> tuple[int, bytes]:
        """Status (0 for none) and body of an ordinary request."""
        answer = send(self._endpoint, request, _ORDINARY_TIMEOUT)
        return (answer.codes[-1] if answer.codes else 0), answer.body

    def existing(self, path: str, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        """The object at `path` as the server has it, made of `body` if there is none; `body` if it cannot be made."""
        found = self._known.get(path)
        if found is None:
            self._json("POST", collection, body)
            code, made = self._json("GET", path)
            found = self._known[path] = made if code == 200 and isinstance(made, dict) else body
        return found

    def _json(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = (("Content-Type", "application/json"), ("Accept", "application/json"), ("Connection", "close"))
        data = b"" if body is None else json.dumps(body).encode()
        code, text = self.ask(Request(method, path, headers, data, ADMIN))
        try:
            return code, json.loads(text)
        except ValueError:
            return code, text.decode("utf-8", "replace")

    # Measuring

    def measure(self, message: Message, lasting: float = 0.0) -> Measured:
        """Sends a message and watches the server until it answers others again, and for `lasting` seconds more."""
        self._marks()
        self._lines()
        before, began = self._cpu(), time.monotonic()
        try:
            answer = send(self._endpoint, message, self._timeout)
        except OSError:
            answer = Answer(())
        seconds = time.monotonic() - began
        marks = self._marks()
        # Work in threads after the answer, and the heartbeat that tells of the last hold, which comes after the
        # ping that waited for it is answered, but before the next one is.
        time.sleep(_SETTLING + lasting)
        marks += self._marks() if None not in marks else [None, None]
        after = self._cpu()
        of_others = [each for each in marks[1::2] if each is not None]
        marks = marks[::2]
        answered = [each for each in marks if each is not None]
        wait = max(each["longest"] for each in answered) if len(answered) == len(marks) else self._timeout
        died = len(answered) < len(marks) or after is None or any(each["failed"] for each in answered)
        probed = sum(each["asked"] for each in answered) * self._ping_cpu
        cpu = 0.0 if after is None or before is None else max(after - before - probed, 0.0)
        # Without a watchdog the probe is all there is.
        holds = tuple(self._lines()) if self._watched else (Hold(wait, wait, "unknown", ""),)
        other = max((each["longest"] for each in of_others), default=self._timeout)
        turned_away = sum(each["failed"] for each in of_others)
        return Measured(answer.codes, seconds, wait, cpu, holds, answer.late, died, other, turned_away)

    def strange_series(self) -> list[str]:
        """Return the wrong labels of its metrics so far."""
        code, text = self.ask(Request("GET", "/metrics", (("Connection", "close"),), token=ADMIN))
        if code != 200:
            return [f"/metrics answers {code}"]
        return list(strange(text.decode("utf-8", "replace"), served(self.ask)))

    def restart(self) -> None:
        """A fresh server. Raises ServerGone."""
        self._stop()
        self._start()
        self.restarts += 1

    def _marks(self) -> list[Mapping[str, Any] | None]:
        """Return the measurements of each probe since the last mark; None for a probe that does not answer in time."""
        for probe in self._probes:
            assert probe.stdin is not None
            probe.stdin.write("\n")
            probe.stdin.flush()
        until = time.monotonic() + self._timeout
        return [self._mark(probe, max(until - time.monotonic(), 0.0)) for probe in self._probes]

    @staticmethod
    def _mark(probe: subprocess.Popen[str], timeout: float) -> Mapping[str, Any] | None:
        assert probe.stdout is not None
        if not select.select([probe.stdout], [], [], timeout)[0]:
            return None
        line = probe.stdout.readline()
        if not line:
            raise ServerGone("a probe has ended")
        return dict(json.loads(line))

    def _cpu(self) -> float | None:
        """Seconds of user and system time of the server's processes; None if one is gone."""
        total = 0
        for pid in self._pids:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                return None
            total += int(fields[11]) + int(fields[12])
        return total * _TICK

    def _lines(self) -> list[Hold]:
        """The holds logged since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        self._read += len(text)
        lines = text.decode("utf-8", "replace")
        found = [
            Hold(float(each[1]), float(each[1]), each[3], each[4]) for each in _STILL_HELD.finditer(lines)
        ]  # which is all there is of a hold that does not end
        for match in _HELD.finditer(lines):
            wall, thread, process = (float(match[number]) for number in (1, 2, 3))
            # The processor time of a held loop is its thread's, or that of another thread that had the interpreter;
            # what the clock says above that is the machine's doing.
            cpu = min(wall, max(thread, process))
            found.append(Hold(wall, cpu, match[8], match[9]))
        return found

    # Starting and stopping

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                shlex.split(self._command), stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_TIMEOUT)
        line = self._process.stdout.readline() if ready else ""
        try:
            document = json.loads(line)
            parts = urllib.parse.urlsplit(document["url"])
            pids: dict[str, int] = document["pids"]
        except (ValueError, KeyError) as error:
            self._stop()
            raise ServerGone(f"{self._command!r} did not say where it listens, but {line!r}") from error
        # The reference's storage is a process of its own, and its time is left out.
        self._pids = [pids["kube-apiserver"]] if "kube-apiserver" in pids else list(pids.values())
        self._endpoint = Endpoint(parts.hostname or "", parts.port or 0, document["ca"])
        self._known = {}
        self._prepare()
        self._watched = b"steersman_loop_held_max_seconds" in self.ask(Request("GET", "/metrics", token=ADMIN))[1]
        self._start_probes()

    def _start_probes(self) -> None:
        where = (self._endpoint.host, str(self._endpoint.port), self._endpoint.ca)
        for asked in ((ADMIN, "/livez/ping"), (OTHER, "/version")):
            self._probes.append(
                subprocess.Popen(
                    [sys.executable, "-P", str(Path(__file__).with_name("probe.py")), *where, *asked],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
        self._marks()
        before = self._cpu() or 0.0
        time.sleep(_BASELINE)
        mark = self._marks()[0]
        self._ping_cpu = ((self._cpu() or 0.0) - before) / max(mark["asked"] if mark else 1, 1)

    def _prepare(self) -> None:
        """Makes the namespaces, the rights of the narrow user, and the crowd if it is needed. Raises ServerGone."""
        for namespace in (NAMESPACE, CROWDED):
            self._made("/api/v1/namespaces", {"metadata": {"name": namespace}})
            rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
            rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
            self._made(f"{rbac}/roles", {"metadata": {"name": "all"}, "rules": [rule]})
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
            user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": NARROW.removesuffix("-token")}
            self._made(f"{rbac}/rolebindings", {"metadata": {"name": "all"}, "roleRef": role, "subjects": [user]})
        if self._crowd:
            self._make_crowd()

    def _make_crowd(self) -> None:
        path = f"/api/v1/namespaces/{CROWDED}/configmaps"
        headers = (("Content-Type", "application/json"),)
        with self._endpoint.connect("http/1.1", _ORDINARY_TIMEOUT) as connection:
            answers = connection.makefile("rb")
            for number in range(CROWD):
                labels = {"app": "web", "number": str(number), "even": str(number % 2 == 0).lower()}
                body = json.dumps({"metadata": {"name": f"c{number:05}", "labels": labels}}).encode()
                head = [
                    f"POST {path} HTTP/1.1",
                    "Host: a",
                    f"Authorization: Bearer {ADMIN}",
                    f"Content-Length: {len(body)}",
                    *(f"{name}: {value}" for name, value in headers),
                ]
                connection.sendall("\r\n".join([*head, "\r\n"]).encode() + body)
                if b" 201 " not in answers.readline():
                    raise ServerGone(f"{self._command!r} does not make ConfigMaps")
                length = 0
                while (line := answers.readline().strip()) != b"":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                answers.read(length)

    def _made(self, path: str, body: dict[str, Any]) -> None:
        code, answer = self._json("POST", path, body)
        if code not in (201, 409):
            raise ServerGone(f"{self._command!r} answers {path} with {code}: {answer}")

    def _stop(self) -> None:
        for probe in self._probes:
            probe.kill()
            probe.communicate()
        self._probes.clear()
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                for pid in self._pids:  # it hangs; the command that started it then sees its end
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_TIMEOUT)
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()
