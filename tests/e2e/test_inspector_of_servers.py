"""The inspector's page on servers of several kinds: each view shows what there is, or says what it cannot show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ServerProcess
from steersman.testing.blocking_client import BlockingClient
from tests.cli.lying_server import lying_server
from tests.e2e.inspector_page import FrontProcess, missing
from tests.lies import DISCOVERY
from tests.storage.etcd.process import EtcdProcess
from tools.stored_values.servers import Reference, free_port, program

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LIES = {
    "a list": b"[]",
    "nulls": b'{"items":null,"requests":null,"metadata":null,"columnDefinitions":null,"rows":null,"steps":null}',
    "lists of nulls": b'{"items":[null],"requests":[null],"rows":[null],"columnDefinitions":[null],"metadata":{}}',
    "numbers": b'{"items":[1],"requests":[1],"rows":[1],"metadata":{"resourceVersion":7,"name":5},"kind":5,"spec":"x"}',
    "half an object": b'{"items":[{"metadata":null}],"requests":[{"id":5,"time":7}],"rows":[{"cells":null,"object":null}],'
    b'"columnDefinitions":[{"name":5}],"steps":[{"name":5,"start":"x"}],"kind":"Pod","apiVersion":"v1","metadata":'
    b'{"name":"x","managedFields":[null],"ownerReferences":[null],"labels":[1]},"status":{"conditions":[null]}}',
}


def found_on(kubeconfig: Path, folder: Path) -> dict[str, Any]:
    """Return what the views of the page show of a server, after a visit of each."""
    with FrontProcess(kubeconfig, folder / "stderr") as front:
        return front.play("any_server", folder)


def fill(client: BlockingClient) -> None:
    status, answer = client.request("POST", CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"a": "b"}})
    assert status == 201, answer


def test_a_server_with_several_processes(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--workers=2") as server:
        with server.client() as client:
            fill(client)
        found = found_on(server.kubeconfig, tmp_path)
    assert found["nodes"]["words"] == "This cluster has no nodes."
    assert found["events"]["words"] == "No events."
    assert {name for name, each in found.items() if each["shows"]} >= {"rates", "objects", "why", "requests", "time"}
    assert "This server has 2 processes" in found["requests"]["words"]
    assert "has several workers" in found["time"]["words"]


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield process
    process.stop()


def test_a_server_on_etcd(etcd: EtcdProcess, tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", f"--etcd-servers={etcd.url}") as server:
        with server.client() as client:
            fill(client)
        found = found_on(server.kubeconfig, tmp_path)
    assert {name for name, each in found.items() if each["shows"]} >= {"rates", "objects", "why", "requests", "time"}
    assert found["requests"]["words"] == ""
    assert "or etcd" in found["time"]["words"]


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_server_that_lies(lie: bytes, tmp_path: Path) -> None:
    def answer(path: str) -> tuple[int, str, bytes]:
        truths = {"/api": json.dumps(DISCOVERY).encode(), "/apis": b'{"items": []}'}
        return 200, "application/json", truths.get(path.partition("?")[0], lie)

    with lying_server(tmp_path, answer) as kubeconfig, FrontProcess(kubeconfig, tmp_path / "stderr") as front:
        front.play("lying", tmp_path)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[Reference]:
    try:
        program("kube-apiserver")
    except LookupError as error:
        pytest.skip(str(error))
    with Reference(tmp_path / "reference", free_port(), ()) as server:
        yield server


def test_kube_apiserver(reference: Reference, tmp_path: Path) -> None:
    answer = reference.client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "settings"}})
    assert answer.code == 201
    server = reference.client.found
    kubeconfig = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server["url"], "certificate-authority": server["ca"]}}],
        "users": [{"name": "u", "user": {"token": server["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig.write_text(json.dumps(config))
    kubeconfig.chmod(0o600)
    found = found_on(kubeconfig, tmp_path)
    assert {name for name, each in found.items() if each["shows"]} == {"rates", "objects", "why"}
    assert found["nodes"]["words"] == "This cluster has no nodes."
    assert "This server does not show its requests" in found["requests"]["words"]
    assert "This server keeps no history that can be read" in found["time"]["words"]
