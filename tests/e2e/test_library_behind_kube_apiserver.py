"""A server of the library behind the real kube-apiserver, asked through that with a real kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.aggregator.extension_server import own_address
from tests.e2e.library_program import Program

pytestmark = pytest.mark.slow

REFERENCE = ROOT / "bench" / "reference" / "reference"
PROGRAM = """
import sys
from examples.flunders.types import Fischer, Flunder
from steersman import Aggregation, Server

folder, kubeconfig, address = sys.argv[1:]
aggregation = Aggregation(service="wardle", address=address, kubeconfig=kubeconfig, register=True)
Server(Flunder, Fischer, data_dir=folder, secure_port=0, aggregation=aggregation).run()
"""


@pytest.fixture(scope="module")
def kube_apiserver() -> Iterator[dict[str, Any]]:
    """The line that tells where it is."""
    programs = Path(os.environ.get("STEERSMAN_REFERENCE") or Path.home() / ".cache" / "steersman-reference")
    missing = [name for name in ("etcd", "kube-apiserver") if not (programs / name).exists()]
    if missing:
        pytest.skip(
            f"no {' and '.join(missing)} on this machine: put them into the folder that $STEERSMAN_REFERENCE names"
        )
    environment = {**os.environ, "STEERSMAN_REFERENCE": str(programs)}
    process = subprocess.Popen([sys.executable, REFERENCE, "up"], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


class Cluster:
    """kubectl for one of its users."""

    def __init__(self, found: dict[str, Any], kubectl: str, home: Path) -> None:
        self._found = found
        self._kubectl = kubectl
        self._home = home

    def kubeconfig(self, user: str) -> Path:
        path = self._home / f"{user}.kubeconfig"
        path.touch(0o600)
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": self._found["url"], "certificate-authority": self._found["ca"],
            }}],
            "users": [{"name": user, "user": {"token": f"{user}-token"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": user}}],
        }))  # fmt: skip
        return path

    def kubectl(self, *arguments: str, stdin: str = "", code: int = 0, user: str = "admin") -> str:
        environment = {**os.environ, "HOME": str(self._home), "KUBECONFIG": str(self.kubeconfig(user))}
        done = subprocess.run(
            [self._kubectl, *arguments], env=environment, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.stdout}"
        return done.stdout


@pytest.fixture
def cluster(kube_apiserver: dict[str, Any], kubectl_binary: str, tmp_path: Path) -> Iterator[Cluster]:
    """With the flunders behind it."""
    found = Cluster(kube_apiserver, kubectl_binary, tmp_path)
    arguments = ("-c", PROGRAM, str(tmp_path / "data"), str(found.kubeconfig("admin")), own_address())
    behind = Program(tmp_path, kubectl_binary, *arguments)
    try:
        for name in ("v1alpha1", "v1beta1"):
            found.kubectl("wait", f"apiservice/{name}.wardle.example.com", "--for=condition=Available", "--timeout=60s")
        yield found
    finally:
        assert behind.stop() == 0


def flunder(name: str, **spec: str) -> str:
    head = {"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "metadata": {"name": name}}
    return json.dumps({**head, "spec": spec})


def test_kube_apiserver_serves_it_to_its_users(cluster: Cluster) -> None:
    assert cluster.kubectl("create", "-f", "-", stdin=flunder("a", flunderReference="b")).endswith("a created\n")
    assert cluster.kubectl("apply", "-f", "-", stdin=flunder("c", flunderReference="d")).endswith("c created\n")
    assert cluster.kubectl("apply", "--server-side", "-f", "-", stdin=flunder("e", flunderReference="f")).endswith(
        "e serverside-applied\n"
    )
    shown = cluster.kubectl("get", "flunders", "--no-headers").splitlines()
    assert [line.split()[:2] for line in shown] == [["a", "b"], ["c", "d"], ["e", "f"]]
    old = json.loads(cluster.kubectl("get", "flunders.v1alpha1.wardle.example.com", "a", "-o", "json"))
    assert old["spec"] == {"reference": "b", "referenceType": "Flunder"}
    assert "What a flunder refers to" in cluster.kubectl("explain", "flunder.spec")

    refused = cluster.kubectl("get", "flunders", user="alice", code=1)
    assert 'User "alice" cannot list resource "flunders" in API group "wardle.example.com"' in refused
    cluster.kubectl("create", "clusterrole", "flunders", "--verb=get,list", "--resource=flunders.wardle.example.com")
    cluster.kubectl("create", "clusterrolebinding", "flunders", "--clusterrole=flunders", "--user=bob")
    assert len(cluster.kubectl("get", "flunders", "--no-headers", user="bob").splitlines()) == 3

    nowhere = cluster.kubectl("create", "-n", "pond", "-f", "-", stdin=flunder("a", flunderReference="b"), code=1)
    assert 'namespaces "pond" not found' in nowhere
    cluster.kubectl("create", "namespace", "pond")
    cluster.kubectl("create", "-n", "pond", "-f", "-", stdin=flunder("a", flunderReference="b"))
    assert cluster.kubectl("delete", "flunders", "--all", "-A").count("deleted") == 4
