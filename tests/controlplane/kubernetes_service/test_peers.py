"""Keys by which servers on one store find each other."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.kubernetes_service.peers import PREFIX, PeerLease
from steersman.controlplane.options import Options
from steersman.storage.interface import KeyValue
from steersman.storage.memory import MemoryStorage
from steersman.testing.waiting import until_true
from tests.controlplane.shared_storage import View, parts_on


async def test_what_is_stored_is_what_kube_apiserver_stores() -> None:
    storage = MemoryStorage(compaction_interval=0, lease_interval=0)
    lease = PeerLease(storage, "apiserver-x")
    for _ in range(3):
        await lease.renew("10.77.0.1", 6443)
    stored = await storage.get("/registry/peerserverleases/apiserver-x")
    assert stored is not None
    assert stored.value == (
        b'{"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":3,"labels":{"apiserverIdentity":"apiserver-x"}},'
        b'"subsets":[{"addresses":[{"ip":"10.77.0.1"}],"ports":[{"name":"https","port":6443,"protocol":"TCP"}]}]}'
    )
    await lease.end()
    await lease.end()
    assert await storage.get(stored.key) is None
    await storage.close()


async def told(store: MemoryStorage) -> KeyValue | None:
    return next(iter((await store.range(PREFIX)).items), None)


async def test_a_server_tells_where_it_is_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStorage(compaction_interval=0, lease_interval=0)

    async def opened(_: Options) -> View:
        return View(store)

    options = Options(data_dir=tmp_path, storage="memory", advertise_address="192.0.2.7", secure_port=0)
    plane = ControlPlane(options, parts=parts_on(opened))
    await plane.start()
    assert plane.server is not None
    port = plane.server.external_address.port
    found = await until_true(lambda: told(store), 10)
    assert isinstance(found, KeyValue)
    (subset,) = json.loads(found.value)["subsets"]
    assert (subset["addresses"], subset["ports"][0]["port"]) == ([{"ip": "192.0.2.7"}], port)
    assert found.key == PREFIX + server_id(socket.gethostname())
    await plane.stop()
    assert (await store.range(PREFIX)).items == []
    await store.close()
