"""`steersman why` about pods that the real kube-scheduler leaves pending, on a real kube-apiserver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from steersman.cli import main
from tests.explain.pods.recorded_cases import BEFORE_NODES, PREEMPTING
from tests.explain.pods.told_groups import difference
from tools.differential.server import Client
from tools.scheduler_comparison.command import running_scheduler
from tools.scheduler_comparison.named_cases import CASES
from tools.scheduler_comparison.recording import Recorder
from tools.stored_values.servers import Reference, free_port, program

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Yield the administrator of a kube-apiserver, beside which a kube-scheduler runs."""
    try:
        program("kube-apiserver")
        scheduler = Path(program("kube-scheduler"))
    except LookupError as error:
        pytest.skip(str(error))
    with (
        Reference(tmp_path_factory.mktemp("reference") / "server", free_port(), ()) as server,
        running_scheduler(server.client, scheduler),
    ):
        yield server.client


@pytest.fixture(scope="module")
def kubeconfig(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kubeconfig of the administrator."""
    found = client.found
    file = tmp_path_factory.mktemp("kubeconfig") / "config"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": found["url"], "certificate-authority": found["ca"]}}],
        "users": [{"name": "u", "user": {"token": found["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(config))
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def recorder(client: Client) -> Recorder:
    recorder = Recorder(client)
    recorder.prepare()
    return recorder


@pytest.mark.parametrize("case", sorted(CASES.keys() - PREEMPTING))
def test_groups_are_those_of_its_event(case: str, recorder: Recorder, kubeconfig: Path) -> None:
    try:
        _, told = recorder.record(case)
        finding = explained(kubeconfig)
    finally:
        recorder.clear()
    assert finding["reason"] == told["reason"]
    if case == "gates":
        return
    assert told["event"] in (told["message"], "")  # events of a repeated message may come later
    if case in BEFORE_NODES:
        assert finding["message"].removeprefix("is rejected before any node is looked at: ") in told["message"]
    else:
        assert difference(finding["details"], told["message"]) == ""


def explained(kubeconfig: Path) -> dict[str, Any]:
    """Return the first finding about the pending pod."""
    result = CliRunner().invoke(main, ["why", "pod/new", "-o", "json", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)["findings"][0]
    return found
