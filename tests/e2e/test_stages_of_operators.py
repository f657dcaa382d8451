"""Custom resources of published operators, which stages alone bring to Ready for a real kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.go_programs import find_go
from tests.e2e.helm_program import find_helm

pytestmark = pytest.mark.slow
TIMEOUT = 120.0
OPERATORS = {
    "github.com/cert-manager/cert-manager@v1.21.2": (
        "deploy/crds/cert-manager.io_certificates.yaml",
        "deploy/crds/cert-manager.io_issuers.yaml",
    ),
    "github.com/external-secrets/external-secrets@v1.3.2": (
        "config/crds/bases/external-secrets.io_externalsecrets.yaml",
        "config/crds/bases/external-secrets.io_secretstores.yaml",
    ),
    "sigs.k8s.io/cluster-api@v1.14.2/core": (
        "config/crd/bases/cluster.x-k8s.io_clusters.yaml",
        "config/crd/bases/cluster.x-k8s.io_machines.yaml",
    ),
}
"""Definitions of custom resources in Go modules."""
READY = """
conditions:
- type: Ready
  status: "True"
  reason: Simulated
  message: brought here by a stage
  observedGeneration: {{ .metadata.generation }}
  lastTransitionTime: {{ Now | Quote }}
"""
NUMBER = 20

Plain = dict[str, Any]


def definitions() -> list[Path]:
    """Return the files of the definitions. Skips the test without Go, or without the modules in its cache."""
    go = find_go()
    if go is None:
        pytest.skip("there is no Go")
    modules = subprocess.run([go, "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    found = [Path(modules) / module / file for module, files in OPERATORS.items() for file in files]
    missing = [each for each in found if not each.is_file()]
    if missing:
        pytest.skip(f"{missing[0]} is not there")
    return found


def ready(kind: str, group: str, *, milliseconds: int) -> Plain:
    """Return a stage that brings a kind to Ready, after a delay with jitter."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": f"{kind.lower()}-ready"},
        "spec": {
            "resourceRef": {"apiGroup": group, "kind": kind},
            "selector": {
                "matchExpressions": [
                    {"cel": {"expression": "!has(self.metadata.deletionTimestamp)"}},
                    {"key": '.status.conditions.[] | select( .type == "Ready" ) | .status', "operator": "DoesNotExist"},
                ]
            },
            "delay": {"durationMilliseconds": milliseconds, "jitterDurationMilliseconds": 3 * milliseconds},
            "steps": [
                {"event": {"type": "Normal", "reason": "Ready", "message": "it is ready"}},
                {"patch": {"subresource": "status", "root": "status", "template": READY}},
            ],
        },
    }


SECRET = """
apiVersion: v1
kind: Secret
metadata:
  name: {{ .spec.secretName }}
  ownerReferences:
  - {apiVersion: {{ .apiVersion }}, kind: {{ .kind }}, name: {{ .metadata.name }}, uid: {{ .metadata.uid }}}
type: kubernetes.io/tls
stringData: {tls.crt: simulated, tls.key: simulated}
"""


def objects() -> list[Plain]:
    """Return custom resources of five kinds."""
    of_kinds: list[tuple[str, str, Plain]] = [
        ("cert-manager.io/v1", "Certificate", {"secretName": "tls-{}", "issuerRef": {"name": "issuer-0"}}),
        ("cert-manager.io/v1", "Issuer", {"selfSigned": {}}),
        (
            "external-secrets.io/v1",
            "ExternalSecret",
            {"secretStoreRef": {"name": "store"}, "data": [{"secretKey": "a", "remoteRef": {"key": "b"}}]},
        ),
        (
            "cluster.x-k8s.io/v1beta2",
            "Machine",
            {
                "clusterName": "one",
                "bootstrap": {"dataSecretName": "data"},
                "infrastructureRef": {"apiGroup": "example.com", "kind": "Metal", "name": "metal"},
            },
        ),
        (
            "cluster.x-k8s.io/v1beta2",
            "Cluster",
            {"infrastructureRef": {"apiGroup": "example.com", "kind": "Rack", "name": "rack"}},
        ),
    ]
    return [
        {
            "apiVersion": group,
            "kind": kind,
            "metadata": {"name": f"{kind.lower()}-{number}"},
            "spec": json.loads(json.dumps(spec).replace("tls-{}", f"tls-{number}")),
        }
        for group, kind, spec in of_kinds
        for number in range(NUMBER)
    ]


def stages() -> list[Plain]:
    """Return the stages that bring the five kinds to Ready. That of Certificates makes their Secrets before."""
    found = [
        ready("Certificate", "cert-manager.io/v1", milliseconds=300),
        ready("Issuer", "cert-manager.io/v1", milliseconds=50),
        ready("ExternalSecret", "external-secrets.io/v1", milliseconds=200),
        ready("Machine", "cluster.x-k8s.io/v1beta2", milliseconds=500),
        ready("Cluster", "cluster.x-k8s.io/v1beta2", milliseconds=100),
    ]
    found[0]["spec"]["steps"].insert(0, {"apply": {"template": SECRET}})
    return found


def pending(stage: Plain) -> Plain:
    """Return a stage of the same kind for its new objects, which reports at once that they are not ready."""
    selector = {"matchExpressions": [{"key": ".status.conditions", "operator": "DoesNotExist"}]}
    steps = [{"patch": {"subresource": "status", "root": "status", "template": READY.replace('"True"', '"False"')}}]
    name = stage["metadata"]["name"].replace("ready", "pending")
    spec = {"resourceRef": stage["spec"]["resourceRef"], "selector": selector, "steps": steps}
    return {**stage, "metadata": {"name": name}, "spec": spec}


def after_pending(stage: Plain) -> Plain:
    """Return the stage that brings objects from there to Ready."""
    key = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    selector = {"matchExpressions": [{"key": key, "operator": "In", "values": ["False"]}]}
    return {**stage, "spec": {**stage["spec"], "selector": selector}}


def write(path: Path, found: list[Plain]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n---\n".join(map(json.dumps, found)))
    return str(path)


class Tools:
    """kubectl and other programs on a cluster with the definitions of the operators."""

    def __init__(self, kubectl: str, kubeconfig: Path, folder: Path) -> None:
        self._kubectl = kubectl
        self.folder = folder
        homes = {f"HELM_{each}_HOME": str(folder / each.lower()) for each in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command and return the process, also if it failed."""
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl and return its output. An exit code other than 0 fails the test."""
        done = self.run(self._kubectl, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait(self, condition: str) -> None:
        """Wait until all custom resources have a condition."""
        waited = self.kubectl("wait", f"--for=condition={condition}", KINDS, "--all", "--timeout=60s")
        assert waited.count("condition met") == 5 * NUMBER

    def count_ready(self) -> int:
        """Return the number of custom resources that are ready now."""
        path = '{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
        return self.kubectl("get", KINDS, "--output", f"jsonpath={path}").split().count("True")


KINDS = "certificates,issuers,externalsecrets,machines,clusters"


@pytest.fixture
def tools(kubectl_binary: str, tmp_path: Path) -> Iterator[Tools]:
    """Yield tools for a cluster in a process of its own."""
    files = definitions()
    data = tmp_path / "data"
    up = [sys.executable, "-m", "steersman.cli", "up", f"--data-dir={data}", "--secure-port=0", "--storage=memory"]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process, ExitStack() as stack:
        stack.callback(process.terminate)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        tools = Tools(kubectl_binary, data / "admin.kubeconfig", tmp_path)
        for each in files:
            tools.kubectl("apply", "--server-side", "--filename", str(each))
        tools.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield tools
    shutil.rmtree(data)


def test_a_hundred_custom_resources_of_three_operators_become_ready(tools: Tools) -> None:
    assert "stages.kwok.x-k8s.io" in tools.kubectl("get", "crd", "--output=name")
    tools.kubectl("apply", "--filename", write(tools.folder / "stages.yaml", stages()))
    tools.kubectl("apply", "--filename", write(tools.folder / "objects.yaml", objects()))
    tools.kubectl("wait", "--for=condition=Ready", "stages", "--all", "--timeout=30s")
    tools.wait("Ready")
    of_type = "--field-selector=type=kubernetes.io/tls"
    assert len(tools.kubectl("get", "secrets", of_type, "--output=name").split()) == NUMBER
    assert "it is ready" in tools.kubectl("describe", "machine", "machine-0")


WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "web", "volumeMounts": [{"name": "tls", "mountPath": "/tls"}]}],
                "volumes": [{"name": "tls", "secret": {"secretName": "tls-0"}}],
            },
        },
    },
}
"""A Deployment whose pod needs the Secret of a Certificate."""


def test_a_chart_that_waits_for_them_installs_once_stages_have_brought_them_to_ready(tools: Tools) -> None:
    helm = find_helm()
    if helm is None:
        pytest.skip("no Helm on this machine: put it in PATH, or name it in $STEERSMAN_HELM")
    if not tools.run(helm, "version", "--short").stdout.startswith("v4"):
        pytest.skip("Helm 3 waits for no custom resources")
    chart = tools.folder / "chart"
    write(chart / "templates" / "objects.yaml", [*objects(), WEB])
    write(chart / "Chart.yaml", [{"apiVersion": "v2", "name": "shop", "version": "1.0.0"}])
    tools.kubectl("apply", "--filename", write(tools.folder / "pending.yaml", list(map(pending, stages()))))
    assert tools.run(helm, "install", "shop", str(chart)).returncode == 0
    tools.wait("Ready=False")
    waiting = "--wait", "--force-conflicts"
    in_vain = tools.run(helm, "upgrade", "shop", str(chart), *waiting, "--timeout=2s")
    assert in_vain.returncode == 1
    assert "not ready" in in_vain.stderr
    assert tools.count_ready() == 0
    tools.kubectl("apply", "--filename", write(tools.folder / "ready.yaml", list(map(after_pending, stages()))))
    done = tools.run(helm, "upgrade", "shop", str(chart), *waiting, "--timeout=60s")
    assert done.returncode == 0, done.stderr
    assert tools.count_ready() == 5 * NUMBER
    assert "1/1" in tools.kubectl("get", "deployment", "web")

    assert tools.run(helm, "uninstall", "shop", "--wait").returncode == 0
    again = tools.run(helm, "install", "shop", str(chart), "--wait", "--timeout=60s")
    assert again.returncode == 0, again.stderr
    assert "1/1" in tools.kubectl("get", "deployment", "web")
    tools.wait("Ready")
