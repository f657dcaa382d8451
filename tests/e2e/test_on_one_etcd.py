"""Tests of kube-apiserver and this server on one etcd, one after the other: each continues with the other's objects."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.storage.etcd.process import EtcdProcess
from tools.differential.server import Client
from tools.stored_values.filling import NAMESPACE, fill
from tools.stored_values.servers import Ours, Reference, free_port, program

pytestmark = pytest.mark.slow

_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_PATIENCE = 30.0
_WRITTEN_BY_SERVERS = frozenset({"apiservices", "componentstatuses"})

Objects = dict[str, dict[str, Any]]


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    try:
        program("kube-apiserver")
    except LookupError as error:
        pytest.skip(str(error))
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield process
    process.stop()


def _flags(folder: Path) -> list[str]:
    """Return the flags of both servers: Secrets are encrypted, built-in kinds are stored as protobuf."""
    key = {"name": "one", "secret": base64.b64encode(b"1" * 32).decode()}
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"aescbc": {"keys": [key]}}, {"identity": {}}]}],
    }
    (file := folder / "encryption.json").write_text(json.dumps(configuration))
    return ["--storage-media-type=application/vnd.kubernetes.protobuf", f"--encryption-provider-config={file}"]


def _lists(client: Client) -> Iterator[tuple[str, str]]:
    """Yield the path of every list, each with the resource's plural."""
    groups = client.ask("GET", "/apis").body["groups"]
    for version in ("api/v1", *(f"apis/{each['groupVersion']}" for group in groups for each in group["versions"])):
        for resource in client.ask("GET", f"/{version}").body["resources"]:
            if "list" in resource["verbs"] and "/" not in resource["name"]:
                yield f"/{version}/{resource['name']}", resource["name"]


def _objects(client: Client) -> Objects:
    """Return the objects that servers do not write themselves, by path of the list and name."""
    objects: Objects = {}
    for path, plural in _lists(client):
        answer = client.ask("GET", path)
        if answer.code != 200 or plural in _WRITTEN_BY_SERVERS:
            continue
        for item in answer.body["items"]:
            name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
            if namespace == NAMESPACE or name.startswith("sample-"):
                objects[f"{path} {namespace}/{name}"] = item
    return objects


def _eventually(client: Client, wanted: Objects) -> Objects:
    """Return the objects once all lists are complete.

    kube-apiserver serves custom resources only some time after it is ready.
    """
    until = time.monotonic() + _PATIENCE
    while (objects := _objects(client)).keys() != wanted.keys() and time.monotonic() < until:
        time.sleep(0.2)
    return objects


def _written(client: Client, word: str) -> dict[str, Any]:
    """Return a Secret after a write by this server."""
    client.ask("DELETE", f"{_CONFIG_MAPS}/of-{word}")
    assert client.ask("POST", _CONFIG_MAPS, {"metadata": {"name": f"of-{word}"}, "data": {"a": word}}).code == 201
    client.ask("POST", _SECRETS, {"metadata": {"name": "shared"}})
    answer = client.ask("GET", f"{_SECRETS}/shared")
    secret = answer.body | {"data": {**answer.body.get("data", {}), word: base64.b64encode(word.encode()).decode()}}
    changed = client.ask("PUT", f"{_SECRETS}/shared", secret)
    assert changed.code == 200, changed.body
    body: dict[str, Any] = changed.body
    return body


def test_each_takes_over_what_the_other_has_stored(etcd: EtcdProcess, tmp_path: Path) -> None:
    flags = _flags(tmp_path)
    port = free_port()
    with Reference(tmp_path / "theirs", port, flags, etcd.url) as server:
        refused = list(fill(server.client, on_request=False))
        secret = _written(server.client, "theirs")
        before = _objects(server.client)
    assert len(before) > 60
    assert not refused
    with Ours(tmp_path / "ours", port, [*flags, f"--etcd-servers={etcd.url}"]) as own:
        objects = _objects(own.client)
        assert objects.keys() == before.keys()
        different = [key for key in before if objects[key] != before[key]]
        assert different == []
        assert own.client.ask("GET", f"{_SECRETS}/shared").body == secret
        secret = _written(own.client, "ours")
        assert set(secret["data"]) == {"theirs", "ours"}
        after = _objects(own.client)
    with Reference(tmp_path / "again", port, flags, etcd.url) as server:
        again = _eventually(server.client, after)
        assert again.keys() == after.keys()
        assert [key for key in after if again[key] != after[key]] == []
        assert server.client.ask("GET", f"{_SECRETS}/shared").body == secret
        assert set(_written(server.client, "again")["data"]) == {"theirs", "ours", "again"}
