"""Custom resources of published operators, which stages alone bring to Ready for a real kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.go_programs import find_go

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


def test_a_hundred_custom_resources_of_three_operators_become_ready(kubectl_binary: str, tmp_path: Path) -> None:
    files = definitions()
    stages = [
        ready("Certificate", "cert-manager.io/v1", milliseconds=300),
        ready("Issuer", "cert-manager.io/v1", milliseconds=50),
        ready("ExternalSecret", "external-secrets.io/v1", milliseconds=200),
        ready("Machine", "cluster.x-k8s.io/v1beta2", milliseconds=500),
        ready("Cluster", "cluster.x-k8s.io/v1beta2", milliseconds=100),
    ]
    stages[0]["spec"]["steps"].insert(0, {"apply": {"template": SECRET}})
    (tmp_path / "stages.yaml").write_text("\n---\n".join(map(json.dumps, stages)))
    (tmp_path / "objects.yaml").write_text("\n---\n".join(map(json.dumps, objects())))
    data = tmp_path / "data"
    up = [sys.executable, "-m", "steersman.cli", "up", f"--data-dir={data}", "--secure-port=0", "--storage=memory"]
    environment = {**os.environ, "KUBECONFIG": str(data / "admin.kubeconfig"), "HOME": str(tmp_path)}

    def kubectl(*arguments: str) -> str:
        done = subprocess.run(
            [kubectl_binary, *arguments], env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process, ExitStack() as stack:
        stack.callback(process.terminate)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        assert "stages.kwok.x-k8s.io" in kubectl("get", "crd", "--output=name")
        kubectl("apply", "--filename", str(tmp_path / "stages.yaml"))
        for each in files:
            kubectl("apply", "--server-side", "--filename", str(each))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        kubectl("apply", "--filename", str(tmp_path / "objects.yaml"))
        kubectl("wait", "--for=condition=Ready", "stages", "--all", "--timeout=30s")
        kinds = "certificates,issuers,externalsecrets,machines,clusters"
        waited = kubectl("wait", "--for=condition=Ready", kinds, "--all", "--timeout=60s")
        assert waited.count("condition met") == 5 * NUMBER
        assert (
            len(kubectl("get", "secrets", "--field-selector=type=kubernetes.io/tls", "--output=name").split()) == NUMBER
        )
        assert "it is ready" in kubectl("describe", "machine", "machine-0")
    shutil.rmtree(data)
