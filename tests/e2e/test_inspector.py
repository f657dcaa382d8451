"""Tests of the inspector's page in Chromium: users' tasks in each view, and what must never happen."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests import ROOT
from tests.e2e.inspector_page import FrontProcess, missing
from tests.e2e.inspector_pictures import VIEWS, take

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")]
POD = {"containers": [{"name": "main", "image": "app"}]}
LARGE = {"containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "400"}}}]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD},
    },
}
READER = {
    "metadata": {"name": "reader"},
    "rules": [{"apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": ["get", "list", "watch"]}],
}
BINDING = {
    "metadata": {"name": "reader"},
    "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "theirs"}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
}
LARGEST_PICTURE = 150_000
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/theirs"


def send(server: ServerProcess, method: str, path: str, body: object, content_type: str = "application/json") -> Any:
    """Send a request as the administrator and return the decoded answer; an error fails the test."""
    with server.client() as client:
        status, answer = client.request(method, path, body, {"Content-Type": content_type})
    assert status < 300, answer
    return json.loads(answer)


def filled(server: ServerProcess) -> ServerProcess:
    """Create the objects that scenarios look for."""
    send(server, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "placed"}, "spec": POD})
    send(server, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "too-large"}, "spec": LARGE})
    return server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Yield a cluster of three nodes, with history."""
    with ServerProcess(tmp_path_factory.mktemp("inspected") / "data", "--nodes=3", verb="up") as process:
        yield filled(process)


@pytest.fixture(scope="module")
def front(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontProcess]:
    with FrontProcess(server.kubeconfig, tmp_path_factory.mktemp("front") / "stderr") as process:
        yield process


@pytest.mark.parametrize(
    "scenario", ["cluster", "why", "requests", "time", "keyboard", "narrow", "accessible", "token", "ended", "hostile"]
)
def test_the_page_in_a_browser(scenario: str, front: FrontProcess, tmp_path: Path) -> None:
    front.play(scenario, tmp_path)


def test_an_object_is_found_changed_and_deleted(server: ServerProcess, front: FrontProcess, tmp_path: Path) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=the-client"
    send(server, "PATCH", path, DEPLOYMENT, "application/apply-patch+yaml")
    front.play("objects", tmp_path)


def test_a_user_with_rights_in_one_namespace_sees_these_and_is_told_of_the_others(
    server: ServerProcess, tmp_path: Path
) -> None:
    send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "theirs"}})
    send(server, "POST", "/api/v1/namespaces/theirs/serviceaccounts", {"metadata": {"name": "reader"}})
    send(
        server,
        "POST",
        "/api/v1/namespaces/theirs/configmaps",
        {"metadata": {"name": "readable"}, "data": {"color": "red"}},
    )
    send(server, "POST", "/api/v1/namespaces/theirs/pods", {"metadata": {"name": "unplaced"}, "spec": LARGE})
    send(server, "POST", f"{RBAC}/roles", READER)
    send(server, "POST", f"{RBAC}/rolebindings", BINDING)
    token = send(server, "POST", "/api/v1/namespaces/theirs/serviceaccounts/reader/token", {})["status"]["token"]
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"server": server.url, "certificate-authority": str(server.ca)}
    kubeconfig.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    kubeconfig.chmod(0o600)
    with FrontProcess(kubeconfig, tmp_path / "stderr") as front:
        front.play("forbidden", tmp_path)


def test_the_page_goes_on_when_the_api_server_comes_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ServerProcess(tmp_path / "data", f"--secure-port={port}", verb="up") as server:
        filled(server)
        with FrontProcess(server.kubeconfig, tmp_path / "stderr") as front:
            front.play("away", tmp_path, {"stop": server.stop, "start": server.start})


def test_servers_without_records_or_without_history_are_told_apart(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--storage=memory") as server:
        send(server, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "settings"}})
        with FrontProcess(server.kubeconfig, tmp_path / "stderr") as front:
            front.play("without_history", tmp_path)


def test_the_pictures_of_the_guide_can_be_taken(tmp_path: Path) -> None:
    take(tmp_path)
    names = {f"inspect-{view}.png" for view in VIEWS}
    assert {each.name for each in tmp_path.iterdir()} == names
    for folder in (tmp_path, ROOT / "docs" / "images"):
        assert [name for name in sorted(names) if (folder / name).stat().st_size > LARGEST_PICTURE] == []
