"""Tests that all acknowledged writes survive kill -9 and a new start."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def objects_of(server: ServerProcess, path: str) -> dict[str, dict[str, Any]]:
    with server.client() as client:
        status, listed = client.json("GET", path)
    assert status == 200, listed
    return {each["metadata"]["name"]: each for each in listed["items"]}


def test_everything_acknowledged_is_there_after_kill_9(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    with server.client() as client:
        for number in range(20):
            body = {"metadata": {"name": f"m{number}"}, "data": {"number": str(number)}}
            assert client.json("POST", CONFIGMAPS, body)[0] == 201
        for number in range(0, 20, 4):
            assert client.json("DELETE", f"{CONFIGMAPS}/m{number}")[0] == 200
        status, changed = client.json("GET", f"{CONFIGMAPS}/m1")
        changed["data"]["number"] = "changed"
        status, changed = client.json("PUT", f"{CONFIGMAPS}/m1", changed)
        assert status == 200
    before = objects_of(server, CONFIGMAPS)
    assert before["m1"]["metadata"] == changed["metadata"]
    assert before["m1"]["data"] == {"number": "changed"}
    server.kill()
    server.start()
    assert objects_of(server, CONFIGMAPS) == before
    with server.client() as client:
        status, again = client.json("POST", CONFIGMAPS, {"metadata": {"name": "after"}})
        assert status == 201
    newest = max(int(each["metadata"]["resourceVersion"]) for each in before.values())
    assert int(again["metadata"]["resourceVersion"]) > newest


def test_what_a_cluster_has_from_the_start_is_made_once(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    paths = ("/api/v1/namespaces", "/api/v1/services", "/apis/rbac.authorization.k8s.io/v1/clusterroles")
    before = [{name: each["metadata"]["uid"] for name, each in objects_of(server, path).items()} for path in paths]
    server.kill()
    server.start()
    after = [{name: each["metadata"]["uid"] for name, each in objects_of(server, path).items()} for path in paths]
    assert after == before


def test_a_watch_goes_on_where_it_was_cut_off(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    with server.client() as client:
        _, first = client.json("POST", CONFIGMAPS, {"metadata": {"name": "first"}})
        _, second = client.json("POST", CONFIGMAPS, {"metadata": {"name": "second"}})
    server.kill()
    server.start()
    version = first["metadata"]["resourceVersion"]
    with server.client() as client:
        _, data = client.request("GET", f"{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
    event = json.loads(data.splitlines()[0])
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "second")
    assert event["object"]["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@pytest.mark.slow
def test_kubectl_finds_its_pod_after_kill_9(
    make_server: Callable[..., ServerProcess], kubectl_for: Callable[[ServerProcess, str], Kubectl]
) -> None:
    server = make_server(WITHOUT_ACCOUNTS)
    server.start()
    kubectl = kubectl_for(server, "default")
    kubectl("run", "nginx", "--image=nginx")
    before = kubectl.json("get", "pod", "nginx")
    server.kill()
    server.start()
    assert kubectl_for(server, "default").json("get", "pod", "nginx") == before
