"""Servers on one etcd, of this project and kube-apiserver, behind one address (tools/one_etcd)."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import BlockingClient
from tests import ROOT
from tests.tools.one_etcd.programs import needed
from tools.differential.server import Client
from tools.one_etcd.command import TOKEN
from tools.one_etcd.servers import KUBERNETES, STEERSMAN, ServersOnEtcd, names

_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., ServersOnEtcd]]:
    with ExitStack() as stack:

        def start(servers: Sequence[str], *flags: str) -> ServersOnEtcd:
            needed(servers)
            return stack.enter_context(ServersOnEtcd(tmp_path, servers, ["--allow-privileged", *flags]))

        yield start


def client_of(servers: ServersOnEtcd, number: int) -> BlockingClient:
    """Return the administrator's client of one server."""
    return BlockingClient(servers.servers[number].address, servers.context())


@pytest.mark.slow
@pytest.mark.parametrize("servers", [(STEERSMAN, STEERSMAN), (STEERSMAN, KUBERNETES)], ids=",".join)
def test_what_one_server_gives_another_takes(servers: tuple[str, str], started: Callable[..., ServersOnEtcd]) -> None:
    """All servers read each other's objects, and accept each other's service account tokens, as they share keys."""
    both = started(servers)
    with client_of(both, 0) as one, client_of(both, 1) as other:
        for number, (writer, reader) in enumerate(((one, other), (other, one))):
            account = f"account-{number}"
            assert writer.request("POST", _ACCOUNTS, {"metadata": {"name": account}})[0] == 201
            status, made = writer.json("POST", f"{_ACCOUNTS}/{account}/token", {"spec": {}})
            assert status == 201, made
            review = {"spec": {"token": made["status"]["token"]}}
            _, found = reader.json("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
            assert found["status"]["user"]["username"] == f"system:serviceaccount:default:{account}"
            assert reader.json("GET", f"{_ACCOUNTS}/{account}") == writer.json("GET", f"{_ACCOUNTS}/{account}")


@pytest.mark.slow
@pytest.mark.parametrize("servers", [(STEERSMAN, STEERSMAN), (STEERSMAN, KUBERNETES)], ids=",".join)
def test_pages_of_a_list_may_be_of_different_servers(
    servers: tuple[str, str], started: Callable[..., ServersOnEtcd]
) -> None:
    """A server accepts the other server's continue token, also after a later write."""
    both = started(servers)
    with client_of(both, 0) as one, client_of(both, 1) as other:
        for name in ("a", "b", "c", "d"):
            one.request("POST", _CONFIG_MAPS, {"metadata": {"name": name}})
        for first, second in ((one, other), (other, one)):
            _, page = first.json("GET", f"{_CONFIG_MAPS}?limit=2")
            first.request("POST", _CONFIG_MAPS, {"metadata": {"name": "bb"}})
            status, rest = second.json("GET", f"{_CONFIG_MAPS}?limit=9&continue={page['metadata']['continue']}")
            assert status == 200, rest
            assert [each["metadata"]["name"] for each in page["items"] + rest["items"]] == ["a", "b", "c", "d"]
            assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
            first.request("DELETE", f"{_CONFIG_MAPS}/bb")


_DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"a": "b"}},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"limits": {"memory": "1Gi", "cpu": "100m"}}}],
                "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c", "items": []}}]}}],
                "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
            },
        },
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["application/vnd.kubernetes.protobuf", "application/json"])
def test_a_write_that_changes_nothing_is_none_whoever_has_stored_the_object(
    form: str, started: Callable[..., ServersOnEtcd]
) -> None:
    """Both servers store an object as the same bytes."""
    both = started((STEERSMAN, KUBERNETES), f"--storage-media-type={form}")
    path = "/apis/apps/v1/namespaces/default/deployments"
    with client_of(both, 0) as one, client_of(both, 1) as other:
        for first, second in ((one, other), (other, one)):
            status, made = first.json("POST", path, _DEPLOYMENT)
            assert status == 201, made
            status, found = second.json("PUT", f"{path}/a", made)
            assert status == 200, found
            assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
            first.request("DELETE", f"{path}/a")


@pytest.mark.slow
def test_a_server_that_is_killed_is_passed_over_until_it_is_there_again(
    started: Callable[..., ServersOnEtcd],
) -> None:
    both = started((STEERSMAN, STEERSMAN))

    def asked() -> list[int]:
        answers = []
        for _ in range(4):
            with both.client() as client:
                answers.append(client.request("GET", "/readyz")[0])
        return answers

    both.servers[0].kill()
    assert asked() == [200] * 4
    both.servers[0].start()
    both.servers[1].kill()
    assert asked() == [200] * 4


@pytest.mark.slow
def test_the_command_tells_where_they_are_and_ends_them() -> None:
    needed((STEERSMAN,))
    command = [sys.executable, "-m", "tools.one_etcd", "steersman,steersman", "--flag=--authorization-mode=RBAC"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        document: dict[str, Any] = json.loads(process.stdout.readline())
        try:
            for url in (document["url"], *document["urls"]):
                client = Client(url, document["ca"], TOKEN)
                assert client.ask("GET", "/api/v1/namespaces/default").code == 200
                client.close()
            assert len(set(document["urls"])) == 2
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("text", "found"), [("steersman", (STEERSMAN,)), ("steersman,kubernetes", (STEERSMAN, KUBERNETES))]
)
def test_servers_are_named(text: str, found: tuple[str, ...]) -> None:
    assert names(text) == found


@pytest.mark.parametrize("text", ["", "k3s", "steersman,"])
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no such server"):
        names(text)
