"""Go's own clients, client-go and controller-runtime, against a server process: the program in client_go/."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.e2e.go_programs import build

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("client_go")
RUN_TIMEOUT = 150.0
FEATURES = {
    "KUBE_FEATURE_WatchListClient": "true",
    "KUBE_FEATURE_ClientsAllowCBOR": "false",
    "KUBE_FEATURE_ClientsPreferCBOR": "false",
}
OUTLASTING = {
    "random writes are answered as they should be",
    "a leader stays the leader",
    "a watch is resumed and misses nothing",
    "a controller with a work queue gets there",
    "a manager of controller-runtime gets there",
    "informer: typed pods",
    "informer: dynamic configmaps",
    "informer: metadata deployments",
}
ALL = OUTLASTING | {
    "conflicts are retried",
    "a leader is elected, and followed by another",
    "a condition is waited for",
    "a list comes in pages",
    "discovery and the RESTMapper agree",
    "OpenAPI describes every group version",
    "events are counted",
    "subresources work",
}


FAULTS = {
    "a conflict is retried",
    "Retry-After is waited for",
    "a name of a created object is matched",
    "a slow request runs into a timeout",
    "a request that hangs runs into a timeout",
    "a cut connection",
    "a lost answer",
    "garbage",
    "a watch expires",
    "events are held back",
    "reads are stale",
    "a webhook fails",
    "a node falls silent, and time leaps until it is given up",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built program."""
    return build(SOURCE, tmp_path_factory.mktemp("client_go") / "client_go")


class Run:
    """Running program with a server."""

    def __init__(
        self, program: Path, server: ServerProcess, folder: Path, *arguments: str, features: Mapping[str, str]
    ) -> None:
        self._said = folder / "client_go.stderr"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [str(program), f"--kubeconfig={server.kubeconfig}", *arguments],
                env={**os.environ, **FEATURES, **features},
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    def wait_running(self, timeout: float = 60.0) -> None:
        """Wait until the program's informers have synced."""
        until = time.monotonic() + timeout
        while "running\n" not in self._said.read_text():
            assert self._process.poll() is None, self._said.read_text()[-3000:]
            assert time.monotonic() < until, "its informers did not sync"
            time.sleep(0.05)

    def report(self) -> dict[str, Any]:
        """Wait for the end of the program and return its report. Fails with the program's message if a check failed."""
        printed, _ = self._process.communicate(timeout=RUN_TIMEOUT)
        assert self._process.returncode in (0, 1), self._said.read_text()[-5000:]
        report: dict[str, Any] = json.loads(printed)
        failed = {name: each["detail"] for name, each in report["checks"].items() if not each["passed"]}
        assert not failed, json.dumps(failed, indent=2)[:5000]
        assert self._process.returncode == 0
        return report

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def running(*arguments: Any, features: Mapping[str, str] | None = None) -> Iterator[Run]:
    run = Run(*arguments, features=features or {})
    try:
        yield run
    finally:
        run.end()


@pytest.mark.parametrize(
    ("name", "features"),
    [
        # client-go ends the program if what a watch began with is not what a list of that version shows.
        ("watch-list", {"KUBE_WATCHLIST_INCONSISTENCY_DETECTOR": "true"}),
        ("list-and-watch", {"KUBE_FEATURE_WatchListClient": "false"}),
        ("cbor", {"KUBE_FEATURE_ClientsAllowCBOR": "true", "KUBE_FEATURE_ClientsPreferCBOR": "true"}),
    ],
)
def test_clients_of_go_work_and_their_informers_know_what_is_there(
    program: Path, server: ServerProcess, tmp_path: Path, name: str, features: dict[str, str]
) -> None:
    with running(program, server, tmp_path, f"--prefix={name}", "--seconds=6", features=features) as run:
        report = run.report()
    assert not ALL - report["checks"].keys()
    counts = report["counts"]
    assert counts["informers"] == sum(each.startswith("informer: ") for each in report["checks"])
    assert not {"create", "update", "patch", "delete", "deletecollection"} - counts.keys()
    # Applies go on in CBOR, though the server has said that it reads none (as kube-apiserver says, by default).
    assert counts.keys() & {"apply", "refused as CBOR"} == ({"refused as CBOR"} if name == "cbor" else {"apply"})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_clients_of_go_go_on_when_the_server_is_killed(
    program: Path, make_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = make_server(f"--secure-port={free_port()}", WITHOUT_ACCOUNTS)
    server.start()
    url = server.url
    chance = random.Random(4)
    with running(program, server, tmp_path, "--seconds=9", "--outages") as run:
        run.wait_running()
        for end in (server.kill, server.stop, server.kill):
            time.sleep(chance.uniform(0.5, 2.5))
            end()
            server.start()
            assert server.url == url
        report = run.report()
    assert not OUTLASTING - report["checks"].keys()
    assert report["counts"]["requests lost"] > 0
    assert server.stop() == 0


def test_clients_of_go_meet_faults(program: Path, tmp_path: Path) -> None:
    def steersman(*arguments: str) -> None:
        command = [sys.executable, "-m", "steersman.cli", *arguments, f"--data-dir={tmp_path}"]
        subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)

    steersman("up", "--storage=memory", "--secure-port=0", "--inspect-port=-1", "--detach")
    try:
        command = [str(program), "--faults", f"--kubeconfig={tmp_path / 'admin.kubeconfig'}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=RUN_TIMEOUT, check=False)
    finally:
        steersman("down")
    checks = json.loads(done.stdout)["checks"]
    assert {name: each["detail"] for name, each in checks.items() if not each["passed"]} == {}
    assert checks.keys() == FAULTS
