"""A real kubectl, where this machine has one, against a server process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from steersman.testing import ServerProcess
from tests.e2e.kubectl import Kubectl, find_kubectl

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def kubectl_binary() -> str:
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("no kubectl on this machine: put one in PATH, or name it in $KUBECTL")
    return kubectl


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return kubectl's home folder, which has its discovery cache."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl_for(kubectl_binary: str, kubectl_home: Path) -> Callable[[ServerProcess, str], Kubectl]:
    """Return `kubectl_for(server, namespace)`, which makes a kubectl for the server at its present address."""
    return lambda server, namespace: Kubectl(kubectl_binary, server, kubectl_home, namespace)


@pytest.fixture
def kubectl(kubectl_for: Callable[[ServerProcess, str], Kubectl], server: ServerProcess) -> Iterator[Kubectl]:
    """Yield kubectl for the module's server, in a fresh namespace."""
    namespace = f"e2e-{next(_NUMBERS)}"
    with server.client() as client:
        status, body = client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert status == 201, body
        yield kubectl_for(server, namespace)
        client.request("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Yield a `steersman up` with three nodes, for the tests of a module."""
    folder = tmp_path_factory.mktemp("cluster") / "data"
    with ServerProcess(folder, "--storage=memory", "--nodes=3", verb="up") as process:
        yield process


@pytest.fixture
def cluster_kubectl(kubectl_for: Callable[[ServerProcess, str], Kubectl], cluster: ServerProcess) -> Iterator[Kubectl]:
    """Yield kubectl for the module's cluster, in a fresh namespace that is deleted after the test."""
    kubectl = kubectl_for(cluster, f"e2e-{next(_NUMBERS)}")
    kubectl("create", "namespace", kubectl.namespace)
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
