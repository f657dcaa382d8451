"""Conversations recorded from kube-apiserver, played against a server of this project: the answers must be the same.

The scenarios are not part of this repository: they are looked for in ../shared/scenarios beside it, or in
$STEERSMAN_SCENARIOS. Those that must pass in full are named in .ci/scenario-areas.txt. Where there is an etcd (see
tests/storage/etcd) they are played on a server that stores in it as well, and on two that share it, of which each
request goes to the other one; but for the few that have servers of their own, or that ask what one itself has done.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from steersman.server.certificates import ensure_certificates
from steersman.testing import ServerProcess
from tests import ROOT
from tests.conformance.scenario_player import (
    FLAGS_FILE,
    Outcome,
    Server,
    check,
    check_all,
    golden,
    namespace_of,
    scenarios,
)
from tests.conformance.scenario_servers import OwnServer, asks_for_its_own, started, with_flags
from tests.storage.etcd.process import EtcdProcess
from tools.round_robin import RoundRobin

SCENARIOS = Path(os.environ.get("STEERSMAN_SCENARIOS") or ROOT.parent / "shared" / "scenarios")
AREAS = ROOT / ".ci" / "scenario-areas.txt"
USUAL_FLAGS = (
    f"--token-auth-file={Path(__file__).with_name('tokens.csv')}",
    "--authorization-mode=Node,RBAC",
    "--disable-admission-plugins=ServiceAccount",
    "--allow-privileged",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
)


def areas() -> list[str]:
    """Return the areas that must pass, each as AREA or AREA/SCENARIO."""
    lines = (line.partition("#")[0].strip() for line in AREAS.read_text().splitlines())
    return [line for line in lines if line]


def place(area: str) -> Path:
    """Return the folder of an area, or the file of one scenario."""
    found = SCENARIOS / area
    return found if found.is_dir() else found.with_name(found.name + ".yaml")


def flags_for(folder: Path) -> tuple[str, ...]:
    """Return the usual flags, in which the flags of the area replace the usual ones of the same name."""
    own = folder / FLAGS_FILE
    if not own.exists():
        return USUAL_FLAGS
    return tuple(with_flags(USUAL_FLAGS, own.read_text().split()))


ONE_SERVERS: Final = frozenset[str]()
"""Areas, and AREA/SCENARIO, about work or state of one server alone."""


class Storing(NamedTuple):
    """Storage of servers: `flags` returns the flags of fresh servers, of which `servers` share a storage."""

    flags: Callable[[], tuple[str, ...]] = tuple
    servers: int = 1


@pytest.fixture(scope="module", params=["sqlite", "etcd", "two-on-etcd"])
def storing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storing]:
    """Yield storage in a folder, and in an etcd below a fresh prefix."""
    if request.param == "sqlite":
        yield Storing()
        return
    etcd = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    numbers = itertools.count(1)
    yield Storing(
        lambda: (f"--etcd-servers={etcd.url}", f"--etcd-prefix=/scenarios-{next(numbers)}"),
        servers=2 if request.param == "two-on-etcd" else 1,
    )
    etcd.stop()


@pytest.fixture(scope="module")
def server_with(
    storing: Storing, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[tuple[str, ...]], Server]]:
    """Yield a function that returns the server with these flags, or the address of several; equal flags share a server.

    The server shows a client certificate to aggregated servers. It needs the certificate for a health check, which the
    recorded server had too.
    """
    known: dict[tuple[str, ...], Server] = {}
    shown = ensure_certificates(tmp_path_factory.mktemp("shown"))
    shows = (f"--proxy-client-cert-file={shown.admin}", f"--proxy-client-key-file={shown.admin_key}")
    with contextlib.ExitStack() as ends:

        def find(flags: tuple[str, ...]) -> Server:
            if flags not in known:
                data, all_flags = tmp_path_factory.mktemp("scenarios") / "data", (*flags, *shows, *storing.flags())
                processes = [ServerProcess(data, *all_flags) for _ in range(storing.servers)]
                for process in processes:
                    ends.callback(process.kill)
                    process.start()
                url = processes[0].url
                if len(processes) > 1:
                    proxy = RoundRobin([process.address for process in processes])
                    ends.callback(proxy.close)
                    url = f"https://127.0.0.1:{proxy.port}"
                known[flags] = Server(url, str(processes[0].ca))
            return known[flags]

        yield find


def on_its_own_server(file: Path, folder: Path, flags: tuple[str, ...]) -> Outcome:
    """Return the outcome of a scenario that has a server of its own."""
    (folder / "files").mkdir(parents=True)
    own = OwnServer(file, folder / "files", namespace_of(file))
    with started(own, (*USUAL_FLAGS, *flags), folder / "data") as process:
        return check(Server(process.url, str(process.ca), own), file, own)


@pytest.mark.slow
@pytest.mark.parametrize("area", areas())
def test_an_area_passes_in_full(
    area: str, server_with: Callable[[tuple[str, ...]], Server], storing: Storing, tmp_path: Path
) -> None:
    if not SCENARIOS.is_dir():
        pytest.skip(f"no scenarios at {SCENARIOS}")
    found = place(area)
    files = scenarios([found])
    assert files, f"no scenario at {found}"
    outcomes: list[Outcome] = []
    if storing.servers > 1 and (asks_for_its_own(files[0]) or area in ONE_SERVERS):
        pytest.skip("is about one server")
    if asks_for_its_own(files[0]):
        outcomes = [on_its_own_server(file, tmp_path / file.stem, storing.flags()) for file in files]
        failed = sum(len(outcome.failed) for outcome in outcomes)
    else:
        server = server_with(flags_for(found if found.is_dir() else found.parent))
        _, failed = check_all(server, files, jobs=1, report=outcomes.append)
    report = "\n".join("\n".join(outcome.lines(4)) for outcome in outcomes if outcome.failed)
    assert failed == 0, f"\n{report}"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a scenario with correct recorded answers, which a test may change."""
    file = tmp_path / "area" / "health.yaml"
    file.parent.mkdir()
    file.write_text("namespace: false\nsteps:\n- {do: GET /livez, only: [code, body]}\n")
    golden(file).write_text('[{"step": 1, "title": "GET /livez", "code": 200, "body": "ok"}]')
    return file


def test_an_answer_that_agrees_passes(scenario: Path, server_with: Callable[[tuple[str, ...]], Server]) -> None:
    outcome = check(server_with(USUAL_FLAGS), scenario)
    assert (outcome.passed, outcome.failed, outcome.error) == (1, [], None)


def test_an_answer_that_differs_fails(scenario: Path, server_with: Callable[[tuple[str, ...]], Server]) -> None:
    golden(scenario).write_text('[{"step": 1, "title": "GET /livez", "code": 200, "body": "not ok"}]')
    outcome = check(server_with(USUAL_FLAGS), scenario)
    assert outcome.passed == 0
    assert outcome.failed[0][1] == ['body: "ok", want "not ok"']


def test_a_server_that_is_not_there_fails_every_step(scenario: Path) -> None:
    outcome = check(Server("https://127.0.0.1:1", None), scenario)
    assert outcome.passed == 0
    assert len(outcome.failed) == 1
    assert isinstance(outcome.error, ConnectionRefusedError)
