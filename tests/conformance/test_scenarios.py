"""Conversations recorded from kube-apiserver, played against a server of this project: the answers must be the same.

The scenarios are not part of this repository: they are looked for in ../shared/scenarios beside it, or in
$STEERSMAN_SCENARIOS. Those that must pass in full are named in .ci/scenario-areas.txt. Where there is an etcd (see
tests/storage/etcd) they are played on a server that stores in it as well.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
    """What must pass: names of areas, or AREA/SCENARIO."""
    lines = (line.partition("#")[0].strip() for line in AREAS.read_text().splitlines())
    return [line for line in lines if line]


def place(area: str) -> Path:
    """The folder of an area, or the file of one scenario."""
    found = SCENARIOS / area
    return found if found.is_dir() else found.with_name(found.name + ".yaml")


def flags_for(folder: Path) -> tuple[str, ...]:
    """The usual flags, with those of the area's own in place of the ones of the same name."""
    own = folder / FLAGS_FILE
    if not own.exists():
        return USUAL_FLAGS
    return tuple(with_flags(USUAL_FLAGS, own.read_text().split()))


@pytest.fixture(scope="module", params=["sqlite", "etcd"])
def storage_flags(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], tuple[str, ...]]]:
    """The flags by which a fresh server stores: in its folder, or in an etcd below a prefix of its own."""
    if request.param == "sqlite":
        yield tuple
        return
    etcd = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    numbers = itertools.count(1)
    yield lambda: (f"--etcd-servers={etcd.url}", f"--etcd-prefix=/scenarios-{next(numbers)}")
    etcd.stop()


@pytest.fixture(scope="module")
def server_with(
    storage_flags: Callable[[], tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[tuple[str, ...]], Server]]:
    """A server with these flags: the same one for the same flags."""
    processes: dict[tuple[str, ...], ServerProcess] = {}

    def find(flags: tuple[str, ...]) -> Server:
        if flags not in processes:
            processes[flags] = process = ServerProcess(
                tmp_path_factory.mktemp("scenarios") / "data", *flags, *storage_flags()
            )
            process.start()
        return Server(processes[flags].url, str(processes[flags].ca))

    yield find
    for process in processes.values():
        process.kill()


def on_its_own_server(file: Path, folder: Path, flags: tuple[str, ...]) -> Outcome:
    """How a scenario goes that has a server of its own."""
    (folder / "files").mkdir(parents=True)
    own = OwnServer(file, folder / "files", namespace_of(file))
    with started(own, (*USUAL_FLAGS, *flags), folder / "data") as process:
        return check(Server(process.url, str(process.ca), own), file, own)


@pytest.mark.slow
@pytest.mark.parametrize("area", areas())
def test_an_area_passes_in_full(area: str, server_with, storage_flags: Callable[[], tuple[str, ...]], tmp_path: Path):
    if not SCENARIOS.is_dir():
        pytest.skip(f"no scenarios at {SCENARIOS}")
    found = place(area)
    files = scenarios([found])
    assert files, f"no scenario at {found}"
    outcomes: list[Outcome] = []
    if asks_for_its_own(files[0]):
        outcomes = [on_its_own_server(file, tmp_path / file.stem, storage_flags()) for file in files]
        failed = sum(len(outcome.failed) for outcome in outcomes)
    else:
        server = server_with(flags_for(found if found.is_dir() else found.parent))
        _, failed = check_all(server, files, jobs=1, report=outcomes.append)
    report = "\n".join("\n".join(outcome.lines(4)) for outcome in outcomes if outcome.failed)
    assert failed == 0, f"\n{report}"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario whose recorded answers are right but for those that a test changes."""
    file = tmp_path / "area" / "health.yaml"
    file.parent.mkdir()
    file.write_text("namespace: false\nsteps:\n- {do: GET /livez, only: [code, body]}\n")
    golden(file).write_text('[{"step": 1, "title": "GET /livez", "code": 200, "body": "ok"}]')
    return file


def test_an_answer_that_agrees_passes(scenario: Path, server_with):
    outcome = check(server_with(USUAL_FLAGS), scenario)
    assert (outcome.passed, outcome.failed, outcome.error) == (1, [], None)


def test_an_answer_that_differs_fails(scenario: Path, server_with):
    golden(scenario).write_text('[{"step": 1, "title": "GET /livez", "code": 200, "body": "not ok"}]')
    outcome = check(server_with(USUAL_FLAGS), scenario)
    assert outcome.passed == 0
    assert outcome.failed[0][1] == ['body: "ok", want "not ok"']


def test_a_server_that_is_not_there_fails_every_step(scenario: Path):
    outcome = check(Server("https://127.0.0.1:1", None), scenario)
    assert outcome.passed == 0
    assert len(outcome.failed) == 1
    assert isinstance(outcome.error, ConnectionRefusedError)
