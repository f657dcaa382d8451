"""Tests of a server of the library behind the real kube-apiserver, with a real kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
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
    """Start kube-apiserver and yield the JSON line with its URL and credentials."""
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
    """kubectl for one of the cluster's users."""

    def __init__(self, found: dict[str, Any], kubectl: str, home: Path) -> None:
        self._found = found
        self._kubectl = kubectl
        self._home = home

    def kubeconfig(self, user: str) -> Path:
        path = self._home / f"{user}.kubeconfig"
        path.touch(0o600)
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "it",
                    "clusters": [
                        {
                            "name": "it",
                            "cluster": {"server": self._found["url"], "certificate-authority": self._found["ca"]},
                        }
                    ],
                    "users": [{"name": user, "user": {"token": f"{user}-token"}}],
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": user}}],
                }
            )
        )
        return path

    def kubectl(self, *arguments: str, stdin: str = "", code: int = 0, user: str = "admin") -> str:
        done = self._run(*arguments, stdin=stdin, user=user)
        assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.stdout}"
        return done.stdout

    def explained(self, what: str) -> str:
        """Return the output of `kubectl explain`, once kube-apiserver has fetched the OpenAPI documents of the server."""
        until = monotonic() + 90
        while (done := self._run("explain", what)).returncode != 0 and monotonic() < until:
            sleep(0.5)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _run(self, *arguments: str, stdin: str = "", user: str = "admin") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HOME": str(self._home), "KUBECONFIG": str(self.kubeconfig(user))}
        return subprocess.run(
            [self._kubectl, *arguments],
            env=environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def cluster(kube_apiserver: dict[str, Any], kubectl_binary: str, tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster with the flunders server behind kube-apiserver."""
    found = Cluster(kube_apiserver, kubectl_binary, tmp_path)
    arguments = ("-c", PROGRAM, str(tmp_path / "data"), str(found.kubeconfig("admin")), own_address())
    behind = Program(tmp_path, kubectl_binary, *arguments)
    try:
        for name in ("v1alpha1", "v1beta1"):
            found.kubectl("wait", f"apiservice/{name}.wardle.example.com", "--for=condition=Available", "--timeout=60s")
        yield found
    finally:
        assert behind.stop() == 0


DECLARED = """
import enum
from datetime import datetime
from typing import Annotated, Any

import msgspec
from steersman import OpenAPI, PrinterColumn, Rule, Scale, resource, version_of

BY_NAME = OpenAPI({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

class Part(msgspec.Struct):
    name: str
    size: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3

class Spec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    color: Color = Color.RED
    port: int | str = 80
    since: datetime | None = None
    some_parts: Annotated[list[Part], BY_NAME] = []
    labels: dict[str, str] = {}
    anything: Any = None
    tags: Annotated[set[str], msgspec.Meta(max_length=5)] = msgspec.field(default_factory=set)

class Status(msgspec.Struct):
    replicas: int = 0

@resource(
    "accepted.example.com/v1", short_names=["mc"], categories=["all"], scale=Scale(), selectable_fields=[".spec.color"],
    printer_columns=[PrinterColumn("Color", ".spec.color", priority=1)],
    rules=[Rule("self.spec.replicas < 100", message="too many")],
)
class Machine(msgspec.Struct):
    spec: Annotated[Spec, Rule("self.replicas >= oldSelf.replicas", message="never fewer")]
    status: Status | None = None

@version_of(Machine, "v1beta1", deprecated=True, deprecation_warning="old")
class Old(msgspec.Struct):
    spec: Spec
"""


def test_kube_apiserver_takes_the_definitions_that_are_printed(
    kube_apiserver: dict[str, Any], kubectl_binary: str, tmp_path: Path
) -> None:
    cluster = Cluster(kube_apiserver, kubectl_binary, tmp_path)
    (tmp_path / "accepted.py").write_text(DECLARED)
    steersman = Path(sys.executable).with_name("steersman")
    printed = subprocess.run([steersman, "crd", "accepted"], cwd=tmp_path, capture_output=True, text=True, check=True)
    cluster.kubectl("create", "-f", "-", stdin=printed.stdout)
    cluster.kubectl("wait", "crd/machines.accepted.example.com", "--for=condition=Established", "--timeout=60s")
    conditions = json.loads(cluster.kubectl("get", "crd", "machines.accepted.example.com", "-o", "json"))["status"]
    assert {each["type"]: each["status"] for each in conditions["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    head = {"apiVersion": "accepted.example.com/v1", "kind": "Machine", "metadata": {"name": "a"}}
    made = cluster.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps({**head, "spec": {"replicas": 2}}))
    spec = json.loads(made)["spec"]
    assert (spec["color"], spec["port"], spec["replicas"]) == ("red", 80, 2)
    fewer = cluster.kubectl("patch", "mc", "a", "--type=merge", "-p", '{"spec": {"replicas": 1}}', code=1)
    assert "never fewer" in fewer


def test_kube_apiserver_takes_the_definitions_of_the_example(
    kube_apiserver: dict[str, Any], kubectl_binary: str, tmp_path: Path
) -> None:
    cluster = Cluster(kube_apiserver, kubectl_binary, tmp_path)
    steersman = Path(sys.executable).with_name("steersman")
    printed = subprocess.run(
        [steersman, "crd", "examples.flunders.types"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert cluster.kubectl("create", "-f", "-", stdin=printed.stdout).count("created") == 2
    assert cluster.kubectl("delete", "-f", "-", stdin=printed.stdout).count("deleted") == 2


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
    assert "Reference of a flunder to another flunder or to a fischer" in cluster.explained("flunder.spec")

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
