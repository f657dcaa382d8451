"""kubectl top, by a server of the shape of metrics-server behind this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.aggregator.extension_server import own_address
from tests.e2e.kubectl import Kubectl
from tests.e2e.metrics_server import GROUP, ROOT, VERSION, MetricsServer, manifests

pytestmark = pytest.mark.slow

TEAM = "team-a"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return ensure_certificates(tmp_path_factory.mktemp("metrics"), ["metrics-server.kube-system.svc"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, files: CertificateFiles) -> Iterator[ServerProcess]:
    proxy = (f"--proxy-client-cert-file={files.admin}", f"--proxy-client-key-file={files.admin_key}")
    with ServerProcess(tmp_path_factory.mktemp("server") / "data", WITHOUT_ACCOUNTS, *proxy) as found:
        yield found


@pytest.fixture(scope="module")
def metrics(files: CertificateFiles) -> Iterator[MetricsServer]:
    metrics_server = MetricsServer(files, own_address())
    metrics_server.nodes = {"n1": {"cpu": "250m", "memory": "512Mi"}, "n2": {"cpu": "1", "memory": "1Gi"}}
    metrics_server.pods = {
        (TEAM, "web"): (
            {"app": "web"},
            {"main": {"cpu": "30m", "memory": "40Mi"}, "side": {"cpu": "5m", "memory": "2Mi"}},
        ),
        (TEAM, "job"): ({"app": "job"}, {"main": {"cpu": "900m", "memory": "700Mi"}}),
        ("default", "other"): ({}, {"main": {"cpu": "1m", "memory": "1Mi"}}),
    }
    yield metrics_server
    metrics_server.stop()


@pytest.fixture(scope="module")
def installed(server: ServerProcess, metrics: MetricsServer, kubectl_binary: str, kubectl_home: Path) -> Kubectl:
    """Return kubectl in the namespace of the pods, once metrics are served."""
    kubectl = Kubectl(kubectl_binary, server, kubectl_home, TEAM)
    kubectl("create", "namespace", TEAM)
    for name in metrics.nodes:
        status = {"capacity": {"cpu": "2", "memory": "2Gi"}, "allocatable": {"cpu": "2", "memory": "2Gi"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        kubectl("create", "-f", "-", stdin=json.dumps(node))
    for namespace, name in metrics.pods:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": [{"name": "main", "image": "i"}]},
        }
        kubectl("create", "-f", "-", f"--namespace={namespace}", stdin=json.dumps(pod))
    kubectl("apply", "-f", "-", "--namespace=kube-system", stdin=manifests(metrics))
    kubectl("wait", "--for=condition=Available", f"apiservice/{VERSION}.{GROUP}", "--timeout=30s")
    until = monotonic() + 30  # what it serves is asked for once it is available, as by kube-apiserver
    while "NodeMetrics" not in kubectl.run("api-resources", f"--api-group={GROUP}").stdout and monotonic() < until:
        sleep(0.1)
    return kubectl


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_top_shows_what_nodes_use(installed: Kubectl) -> None:
    assert rows(installed("top", "nodes")) == [
        ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"],
        ["n1", "250m", "12%", "512Mi", "25%"],
        ["n2", "1000m", "50%", "1024Mi", "50%"],
    ]
    assert rows(installed("top", "node", "n2", "--no-headers")) == [["n2", "1000m", "50%", "1024Mi", "50%"]]
    assert "(NotFound)" in installed.fails("top", "node", "none")


def test_top_shows_what_pods_use(installed: Kubectl) -> None:
    head = ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert rows(installed("top", "pods", "--sort-by=cpu")) == [head, ["job", "900m", "700Mi"], ["web", "35m", "42Mi"]]
    assert rows(installed("top", "pods", "-l", "app=web")) == [head, ["web", "35m", "42Mi"]]
    assert rows(installed("top", "pod", "web", "--containers", "--no-headers")) == [
        ["web", "main", "30m", "40Mi"],
        ["web", "side", "5m", "2Mi"],
    ]
    everywhere = rows(installed("top", "pods", "-A", "--no-headers"))
    assert {(line[0], line[1]) for line in everywhere} == {(TEAM, "web"), (TEAM, "job"), ("default", "other")}


def test_the_server_behind_is_told_who_asks(installed: Kubectl, metrics: MetricsServer) -> None:
    installed("get", "--raw", f"{ROOT}/nodes", "--as=alice", "--as-group=system:masters")
    assert metrics.asked_by[-1] == "alice"
    before = len(metrics.asked_by)
    assert 'User "alice" cannot list resource "nodes" in API group "metrics.k8s.io"' in installed.fails(
        "get", "--raw", f"{ROOT}/nodes", "--as=alice"
    )
    assert len(metrics.asked_by) == before
    binding = [
        "create",
        "clusterrolebinding",
        "alice",
        "--clusterrole=system:aggregated-metrics-reader",
        "--user=alice",
    ]
    installed(*binding)
    listed = json.loads(installed("get", "--raw", f"{ROOT}/nodes", "--as=alice"))
    assert [each["metadata"]["name"] for each in listed["items"]] == list(metrics.nodes)


def test_metrics_stand_in_discovery_and_openapi(installed: Kubectl, server: ServerProcess) -> None:
    resources = installed("api-resources", f"--api-group={GROUP}", "--no-headers", "-o=wide")
    assert [line[:4] for line in rows(resources)] == [
        ["nodes", f"{GROUP}/{VERSION}", "false", "NodeMetrics"],
        ["pods", f"{GROUP}/{VERSION}", "true", "PodMetrics"],
    ]
    aggregated = _aggregated(server)
    (versions,) = (each["versions"] for each in aggregated["items"] if each["metadata"].get("name") == GROUP)
    assert [(each["version"], each["freshness"]) for each in versions] == [(VERSION, "Current")]
    assert [each["resource"] for each in versions[0]["resources"]] == ["nodes", "pods"]
    # the documents of a server behind are asked for beside everything else, as by kube-apiserver
    explained, until = "", monotonic() + 60
    while "The memory usage." not in explained and monotonic() < until:
        explained = installed.run("explain", "nodes.usage", f"--api-version={GROUP}/{VERSION}").stdout
    assert "The memory usage." in explained
    merged = json.loads(installed("get", "--raw", "/openapi/v2"))
    assert f"{ROOT}/nodes/{{name}}" in merged["paths"]
    assert "/api/v1/nodes" in merged["paths"]
    assert "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics" in merged["definitions"]


def _aggregated(server: ServerProcess) -> Any:
    with server.client() as client:
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        status, body = client.request("GET", "/apis", headers={"Accept": accept})
    assert status == 200
    return json.loads(body)


def test_kubectl_says_so_where_nothing_measures(
    kubectl_for: Callable[[ServerProcess, str], Kubectl], tmp_path: Path
) -> None:
    with ServerProcess(tmp_path / "data", WITHOUT_ACCOUNTS) as alone:
        assert "Metrics API not available" in kubectl_for(alone, "default").fails("top", "nodes")
