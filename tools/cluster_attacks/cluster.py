"""A cluster that is attacked, and what it costs the others."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steersman.testing import BlockingClient, ServerProcess

Plain = dict[str, Any]

NAMESPACE: Final = "attacker"
_HELD: Final = re.compile(r"the loop was held for ([0-9.]+) s \(.* the process ([0-9.]+) s,.* samples? in (\S+):")
_TOLD_FROM: Final = 0.015
"""Seconds of a hold that the watchdog tells of."""
_EVERY: Final = 1.0
_LONGEST: Final = 120.0


@dataclass(frozen=True)
class Costs:
    """Times in seconds, memory in bytes."""

    holds: list[tuple[float, str]]
    """Seconds for which the event loop was held while the process worked, with the function."""
    longest: list[str]
    """Log lines about the longest hold."""
    running: list[float]
    """Seconds until the pods of other users ran."""
    cpu: float
    memory: int


class AttackedCluster:
    """`with AttackedCluster(folder) as cluster`; `client` is the attacker's, `admin` the administrator's."""

    def __init__(
        self, folder: Path, nodes: int, *, role: str = "admin", others: bool = True, storage: str = "--storage=memory"
    ) -> None:
        """`role` is what the attacker is in the namespace; with `others` somebody else makes pods meanwhile."""
        self._role = role
        self._has_others = others
        self._server = ServerProcess(
            folder / "data", storage, f"--nodes={nodes}", f"--debug-loop-watchdog={int(_TOLD_FROM * 1000)}ms", verb="up"
        )
        self._other = threading.Thread(target=self._run_pods, daemon=True)
        self._over = threading.Event()
        self._running: list[float] = []

    def __enter__(self) -> AttackedCluster:
        self._server.start()
        self.admin = self._server.client(timeout=120)
        self.client = BlockingClient(self._server.address, self._server.context(admin=False), 120, token=self._token())
        time.sleep(2)  # what the start holds is not counted
        self._from = self._server.errors.stat().st_size
        self._cpu = self._cpu_seconds()
        if self._has_others:
            self._other.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._has_others:
            self._other.join(_LONGEST)
        for client in (self.admin, self.client):
            client.close()
        self._server.kill()

    def _token(self) -> str:
        base = f"/api/v1/namespaces/{NAMESPACE}"
        self.make("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, by=self.admin)
        self.make(f"{base}/serviceaccounts", {"metadata": {"name": "attacker"}}, by=self.admin)
        self.make(
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
            {
                "metadata": {"name": "attacker"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self._role},
                "subjects": [{"kind": "ServiceAccount", "name": "attacker", "namespace": NAMESPACE}],
            },
            by=self.admin,
        )
        made = self.make(f"{base}/serviceaccounts/attacker/token", {"spec": {}}, by=self.admin)
        token: str = made["status"]["token"]
        return token

    def make(self, path: str, body: Plain | bytes, *, by: BlockingClient | None = None) -> Plain:
        """Makes an object, of the attacker's if nobody else is named. Raises AssertionError where it is refused."""
        while True:
            code, made = (by or self.client).json("POST", path, body)
            if code != 429:
                break
            time.sleep(0.2)
        assert code < 300, (path, code, str(made)[:500])
        found: Plain = made
        return found

    def begin(self) -> None:
        """Counts from now on: holds, memory, what is logged."""
        self._from = self._server.errors.stat().st_size
        self._reset_peak()
        self._memory = self._memory_of("VmRSS")

    def _reset_peak(self) -> None:
        Path(f"/proc/{self._server.pid}/clear_refs").write_text("5")

    def _memory_of(self, what: str) -> int:
        status = Path(f"/proc/{self._server.pid}/status").read_text()
        match = re.search(rf"^{what}:\s+([0-9]+) kB", status, re.MULTILINE)
        assert match is not None
        return int(match[1]) << 10

    def over(self, held: float, memory: float) -> list[str]:
        """Return the exceeded bounds since `begin` (seconds of a hold, MiB), and logged failures."""
        told = []
        lines = self._lines()
        holds = [(_worked(match), line) for line in lines if (match := _HELD.search(line))]
        longest, line = max(holds, default=(0.0, ""))
        if longest > held:
            told.append(f"held the loop for {longest * 1000:.0f} ms: {line.partition(' by ')[2][:300]}")
        grown = (self._memory_of("VmHWM") - self._memory) / 2**20
        if grown > memory:
            told.append(f"took {grown:.0f} MiB")
        failed = [line for line in lines if "panic'd" in line or line.startswith("Traceback")]
        if failed:
            at = lines.index(failed[0])
            told.append("logged " + " | ".join(line[:300] for line in lines[max(at - 1, 0) : at + 30]))
        return told

    def quiet(self, seconds: float) -> None:
        """Waits until the process has next to nothing to do, at most some seconds."""
        until, calm = time.monotonic() + seconds, 0
        while calm < 2 and time.monotonic() < until:
            before = self._cpu_seconds()
            time.sleep(0.15)
            calm = calm + 1 if self._cpu_seconds() - before < 0.03 else 0

    def _lines(self) -> list[str]:
        with self._server.errors.open() as told:
            told.seek(self._from)
            return [line.rstrip() for line in told]

    def costs(self) -> Costs:
        """Return the costs since `begin`."""
        lines = self._lines()
        matches = [(match, line) for line in lines if (match := _HELD.search(line))]
        holds = [(_worked(match), match[3]) for match, _ in matches]
        longest = [line for _, line in sorted(matches, key=lambda each: -_worked(each[0]))[:10]]
        return Costs(
            holds, longest, list(self._running), self._cpu_seconds() - self._cpu, self._server.resident_bytes()
        )

    def is_idle(self, seconds: float) -> bool:
        """Waits some time; whether the process had next to nothing to do."""
        before = self._cpu_seconds()
        time.sleep(seconds)
        return self._cpu_seconds() - before < 0.25 * seconds

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _run_pods(self) -> None:
        """A pod a second; the time until each runs."""
        with self._server.client(timeout=120) as client:
            self._run_pods_by(client)

    def _run_pods_by(self, client: BlockingClient) -> None:
        path = "/api/v1/namespaces/default/pods"
        number = 0
        while not self._over.is_set():
            number += 1
            pod = {"metadata": {"name": f"other-{number}"}, "spec": {"containers": [{"name": "c", "image": "app"}]}}
            began = time.monotonic()
            self.make(path, pod, by=client)
            while not self._over.is_set():
                phase = client.json("GET", f"{path}/other-{number}")[1].get("status", {}).get("phase")
                if phase == "Running" or time.monotonic() - began > _LONGEST:
                    break
                time.sleep(0.02)
            took = time.monotonic() - began
            self._running.append(took)
            client.request("DELETE", f"{path}/other-{number}?gracePeriodSeconds=0")
            self._over.wait(max(_EVERY - took, 0))


def _worked(match: re.Match[str]) -> float:
    """Seconds of a hold in which the process worked: on a busy machine it waits too, for others."""
    return min(float(match[1]), float(match[2]))


def told(costs: Costs) -> str:
    """One line."""
    holds = [(time, where) for time, where in costs.holds if time > _TOLD_FROM]
    longest, where = max(holds, default=(0.0, "nothing"))
    most = Counter(where for _, where in holds).most_common(2)
    frequent = ", ".join(f"{where} {number}" for where, number in most)
    running = sorted(costs.running) or [0.0]
    return (
        f"{len(holds)} holds over {_TOLD_FROM * 1000:.0f} ms, of {longest * 1000:.0f} ms at most ({where}; most: "
        f"{frequent}); {len(running)} pods of others ran after {running[len(running) // 2]:.2f} s, "
        f"at most {running[-1]:.2f} s; {costs.cpu:.1f} s of CPU; {costs.memory >> 20} MiB"
    )
