"""An upgrade from one minor version of this server to the next, server by server, on a real etcd.

The next version is the present one: it stores HorizontalPodAutoscalers as autoscaling/v2 and reads v1. The previous
version is simulated: it knows only v1 in storage, and serves both by conversion.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.controlplane import stores
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.controlplane.parts.storing import StoredVersions
from steersman.controlplane.stored_forms import stored_form
from steersman.controlplane.stored_versions import agreement, records
from steersman.kinds.stored_form import NotAnObject, StoredForm, StoredVersion
from steersman.machinery.codec.protobuf import documents
from steersman.rest.resource import Resource
from steersman.storage.interface import StorageFormatError
from steersman.storage.moving.cluster import Cluster
from steersman.testing.client import Client
from tests.storage.etcd.process import EtcdProcess

pytestmark = pytest.mark.slow

ADMIN = UserInfo("admin", groups=("system:masters",))
V1, V2 = "autoscaling/v1", "autoscaling/v2"
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class FormBefore(StoredForm):
    """Stored form of the previous version, which stores and reads only v1."""

    def is_own(self, stored: bytes) -> bool:
        return False

    def reads(self, api_version: str) -> bool:
        return api_version == V1

    def value(self, stored: bytes) -> bytes:
        if self.version_of(stored) != V1:
            raise NotAnObject("it is of a version to come")
        return super().value(stored)

    def version_of(self, stored: bytes) -> str:
        if stored.startswith(documents.PREFIX):
            return documents.decode_envelope(stored).api_version
        found: str = json.loads(stored)["apiVersion"]
        return found


def form_before(resource: Resource[Any, Any], media_type: str) -> StoredForm | None:
    if resource.plural != "horizontalpodautoscalers":
        return stored_form(resource, media_type)
    (v1,) = (each for each in resource.other_versions if each.kind.api_version == V1)
    known = {V1: StoredVersion(v1.kind, v1.hub, v1.from_hub)}
    form = FormBefore(resource.kind, media_type, find=known.get, written=V1)
    form.names = (V1,)  # type: ignore[misc]
    return form


def scaler(name: str) -> dict[str, Any]:
    """Return a HorizontalPodAutoscaler with fields that v1 keeps in annotations."""
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}
    return {
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": memory}],
        },
    }


class Upgrade:
    def __init__(self, etcd: EtcdProcess, folder: Path, monkeypatch: pytest.MonkeyPatch, media_type: str) -> None:
        self._etcd = etcd
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._media_type = media_type
        self.running: list[ControlPlane] = []

    async def start(self, *, before: bool = False) -> tuple[ControlPlane, Client]:
        """Start a server of the previous or the next version."""
        self._monkeypatch.setattr(stores, "stored_form", form_before if before else stored_form)
        options = Options(
            data_dir=self._folder,
            listen=False,
            etcd_servers=(self._etcd.url,),
            storage_media_type=self._media_type,
            advertise_address=f"192.0.2.{len(self.running) + 1}",
        )
        plane = ControlPlane(options)
        await plane.start()
        self.running.append(plane)
        return plane, Client(plane, {"admin": plane.token_of(ADMIN)}, "admin")

    async def stop(self, plane: ControlPlane) -> None:
        self.running.remove(plane)
        await plane.stop()

    async def stored(self) -> dict[str, str]:
        """Return the stored version of each HorizontalPodAutoscaler in etcd, by name."""
        cluster = Cluster([self._etcd.url], None, "/registry")
        try:
            revision, _, _ = await cluster.state()
            return {
                key.rpartition("/")[2]: _version(each.value)
                async for page in cluster.pages(revision)
                for each in page
                if (key := cluster.inner(each.key)).startswith("/registry/horizontalpodautoscalers/")
            }
        finally:
            cluster.close()


def _version(value: bytes) -> str:
    if value.startswith(documents.PREFIX):
        return documents.decode_envelope(value).api_version
    found: str = json.loads(value)["apiVersion"]
    return found


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield process
    process.stop()


@pytest.fixture(params=["application/json", PROTOBUF])
async def upgrade(
    request: pytest.FixtureRequest, etcd: EtcdProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Upgrade]:
    monkeypatch.setattr(agreement, "INTERVAL", 0.2)
    monkeypatch.setattr(records, "TTL", 3)
    made = Upgrade(etcd, tmp_path / "data", monkeypatch, request.param)
    yield made
    for plane in list(made.running):
        await made.stop(plane)


async def eventually(upgrade: Upgrade, wanted: dict[str, str]) -> None:
    async with asyncio.timeout(60):
        while await upgrade.stored() != wanted:  # noqa: ASYNC110 - servers do that
            await asyncio.sleep(0.1)


async def start_again_and_again(upgrade: Upgrade) -> None:
    """Restart servers of the previous version until the store says that there may be a version that they cannot
    read.
    """
    while True:
        plane, _ = await upgrade.start(before=True)
        await upgrade.stop(plane)


async def test_server_by_server(upgrade: Upgrade) -> None:
    one, client_of_one = await upgrade.start(before=True)
    assert (await client_of_one.post(SCALERS, scaler("a"))).status == 201
    two, client_of_two = await upgrade.start(before=True)
    await upgrade.stop(one)
    _, new = await upgrade.start()
    made = await new.post(SCALERS, scaler("b"))
    assert made.status == 201
    assert await upgrade.stored() == {"a": V1, "b": V1}
    seen = (await client_of_two.get(f"{SCALERS}/b")).json()
    assert seen == made.json()  # nothing was lost on the way
    assert (await new.patch(f"{SCALERS}/a", {"spec": {"maxReplicas": 5}})).status == 200
    assert (await client_of_two.patch(f"{SCALERS}/b", {"spec": {"maxReplicas": 6}})).status == 200
    before = (await new.get(SCALERS)).json()
    assert [each["spec"]["maxReplicas"] for each in before["items"]] == [5, 6]
    version = before["metadata"]["resourceVersion"]
    await upgrade.stop(two)
    await eventually(upgrade, {"a": V2, "b": V2})
    after = (await new.get(SCALERS)).json()
    assert [_without_version(each) for each in after["items"]] == [_without_version(each) for each in before["items"]]
    async with asyncio.timeout(20):
        watching = await new.open("GET", f"{SCALERS}?watch=1&resourceVersion={version}")
        text = b""
        async for piece in watching:
            text += piece
            if text.count(b"\n") == 2:
                break
    assert [json.loads(line)["type"] for line in text.splitlines()] == ["MODIFIED", "MODIFIED"]
    message = f"horizontalpodautoscalers.autoscaling as {V2}, which this one cannot read"
    with pytest.raises(StorageFormatError, match=message):
        await asyncio.wait_for(start_again_and_again(upgrade), 20)
    assert await upgrade.stored() == {"a": V2, "b": V2}


async def test_a_server_that_is_killed_counts_for_a_while(upgrade: Upgrade) -> None:
    one, client = await upgrade.start(before=True)
    assert (await client.post(SCALERS, scaler("a"))).status == 201
    _, new = await upgrade.start()
    assert (await new.post(SCALERS, scaler("b"))).status == 201
    agreement = one.part(StoredVersions).agreement
    assert agreement is not None
    await agreement.rounds.stop()  # it says no more that it is there
    assert (await new.post(SCALERS, scaler("c"))).status == 201
    assert await upgrade.stored() == {"a": V1, "b": V1, "c": V1}
    await eventually(upgrade, {"a": V2, "b": V2, "c": V2})


def _without_version(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}
