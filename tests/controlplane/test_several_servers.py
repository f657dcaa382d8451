"""Control planes on one store: each does its part, and none undoes the work of another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steersman.api.core.v1 import Service, ServicePort, ServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.bootstrap import AUTHENTICATION_INFO
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.kubernetes_service.service import KubernetesService
from steersman.controlplane.options import Options
from steersman.controlplane.parts.keeping import InitialObjects, MaintainedObjects
from steersman.controlplane.upkeep import Upkeep
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.rest.context import loopback
from steersman.storage.memory import MemoryStorage
from steersman.testing import Client, User
from steersman.testing.keys import make_keys
from tests.apiextensions.cluster import DEFINITIONS, GROUP, condition, definition
from tests.cached_objects import cached
from tests.controlplane.shared_storage import View, parts_on


async def values(store: MemoryStorage) -> dict[str, bytes]:
    """Return all stored values by key."""
    return {each.key: each.value for each in (await store.range("")).items}


class Servers:
    """Servers on one store, each with its own address: 192.0.2.1 and so on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ahead = 0.0
        """Seconds by which the clock of the store is ahead."""
        self.store = MemoryStorage(compaction_interval=0, lease_interval=0, clock=lambda: times.unix_now() + self.ahead)
        self.running: dict[int, ControlPlane] = {}
        self.views: dict[int, View] = {}
        self.late = False
        """True if servers are behind the others from the start."""

    async def open(self, options: Options) -> View:
        number = int(options.advertise_address.rpartition(".")[2])
        view = self.views[number] = View(self.store)
        if self.late:
            view.hold()
        return view

    def make(self, number: int, **options: Any) -> ControlPlane:
        folder = self._folder / str(number)
        if not folder.exists():
            folder.mkdir(0o700)
            make_keys(folder)
        address = f"192.0.2.{number}"
        given = Options(data_dir=folder, listen=False, storage="memory", advertise_address=address, **options)
        plane = ControlPlane(given, parts=parts_on(self.open))
        self.running[number] = plane
        return plane

    async def start(self, number: int, **options: Any) -> ControlPlane:
        plane = self.make(number, **options)
        await plane.start()
        return plane

    async def stop(self, number: int) -> None:
        await self.running.pop(number).stop()

    def upkeep(self, number: int) -> Upkeep:
        return self.running[number].part(MaintainedObjects).upkeep

    def kubernetes(self, number: int) -> KubernetesService:
        return self.running[number].part(InitialObjects).kubernetes


@pytest.fixture
async def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    made = Servers(tmp_path)
    yield made
    for number in list(made.running):
        await made.stop(number)
    await made.store.close()


async def leading_to(plane: ControlPlane) -> tuple[list[str], list[str]]:
    """Return the addresses of the Endpoints and of the EndpointSlice."""
    endpoints = await cached(plane, "", "endpoints", "default", "kubernetes")
    slice_ = await cached(plane, "discovery.k8s.io", "endpointslices", "default", "kubernetes")
    subsets = [address.ip for subset in endpoints.subsets for address in subset.addresses]
    return subsets, [address for endpoint in slice_.endpoints for address in endpoint.addresses]


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("late", [False, True])
async def test_servers_that_start_at_once_make_everything_once(
    servers: Servers, caplog: pytest.LogCaptureFixture, late: bool
) -> None:
    servers.late = late
    planes = [servers.make(number) for number in (1, 2, 3)]
    await asyncio.gather(*(plane.start() for plane in planes))
    assert complaints(caplog) == []
    for plane in planes:
        assert plane.server is not None
        assert [each async for each in plane.server.readyz.results() if each[1] is not None] == []
        await plane.objects("", "endpoints").wait_until_current()
        assert await leading_to(plane) == (["192.0.2.1", "192.0.2.2", "192.0.2.3"],) * 2
    leases = "/registry/leases/"  # one for all, as they are on one host
    once = [event for event in servers.store._log if event.previous is None and not event.key.startswith(leases)]
    assert len({event.key for event in once}) == len(once)


async def test_another_server_changes_nothing_but_what_tells_of_it(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    await servers.start(1)
    before = await values(servers.store)
    await servers.start(2)
    assert complaints(caplog) == []
    after = await values(servers.store)
    changed = {key for key, value in after.items() if before.get(key) != value}
    assert {key.removeprefix("/registry/").partition("/apiserver-")[0] for key in changed} == {
        "steersman.stored-versions/servers",
        "steersman.stored-versions/store",
        "masterleases/192.0.2.2",
        "peerserverleases",
        "leases/kube-system",
        "services/endpoints/default/kubernetes",
        "endpointslices/default/kubernetes",
        "configmaps/kube-system/extension-apiserver-authentication",
    }
    both = await cached(servers.running[1], "", "configmaps", *AUTHENTICATION_INFO)
    assert both.data["client-ca-file"].count("BEGIN CERTIFICATE") == 2


async def test_the_service_leads_to_those_that_run(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = await servers.start(1), await servers.start(2)
    assert await leading_to(one) == (["192.0.2.1", "192.0.2.2"],) * 2
    await servers.stop(1)
    assert await leading_to(two) == (["192.0.2.2"],) * 2
    await servers.start(1)
    assert await leading_to(two) == (["192.0.2.1", "192.0.2.2"],) * 2


async def test_a_server_that_is_lost_is_led_to_no_more_when_its_lease_has_run_out(servers: Servers) -> None:
    await servers.start(1)
    two = await servers.start(2)
    servers.ahead = 14
    await servers.kubernetes(2).sync()  # says that it runs
    servers.ahead = 16
    await servers.store.expire_leases()  # and the first one does not
    await servers.kubernetes(2).sync()
    assert await leading_to(two) == (["192.0.2.2"],) * 2
    await servers.kubernetes(1).sync()  # which was only slow
    assert await leading_to(two) == (["192.0.2.1", "192.0.2.2"],) * 2


async def test_servers_never_give_one_address_or_port_to_two_services(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    planes = [await servers.start(number, service_cluster_ip_range="10.0.0.0/26") for number in (1, 2)]
    for view in servers.views.values():
        view.hold()

    async def make(plane: ControlPlane, name: str, node_port: int = 0) -> Service:
        spec = ServiceSpec(type="NodePort", ports=[ServicePort(port=80, node_port=node_port)])
        service = Service(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)
        made: Service = await plane.objects("", "services").create(loopback("default"), service)
        return made

    made = await asyncio.gather(*(make(plane, f"s{n}-{i}") for i, plane in enumerate(planes) for n in range(20)))
    assert len({each.spec.cluster_ip for each in made}) == len({each.spec.ports[0].node_port for each in made}) == 40
    with pytest.raises(StatusError, match="provided port is already allocated"):
        await make(planes[1], "late", made[0].spec.ports[0].node_port)
    for number in (1, 2):
        await servers.upkeep(number).repair_ports()
        servers.upkeep(number).addresses.everything_changed()
        await servers.upkeep(number).addresses.run()
    assert complaints(caplog) == []


async def test_a_definition_that_another_server_has_let_go_is_not_taken_for_the_next_of_its_name(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    """Both servers delete the objects of a definition concurrently; a new definition of the same name keeps its
    objects.
    """
    planes = [await servers.start(number) for number in (1, 2)]
    one, two = (Client(plane, {}, User("admin", ("system:masters",))) for plane in planes)
    name, path = f"foos.{GROUP}", f"/apis/{GROUP}/v1/namespaces/default/foos"

    def foo(name: str, **metadata: Any) -> dict[str, Any]:
        return {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": name, **metadata}}

    async def until(client: Client, target: str, status: int) -> None:
        async with asyncio.timeout(20):
            while (await client.get(target)).status != status:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)

    async def define() -> None:
        async with asyncio.timeout(20):
            while (await one.post(DEFINITIONS, definition())).status != 201:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)
        await until(one, path, 200)

    await define()
    await until(two, path, 200)
    assert (await one.post(path, foo("a", finalizers=["example.com/stay"]))).status == 201
    await one.delete(f"{DEFINITIONS}/{name}")
    finalizing: list[Any] = []
    async with asyncio.timeout(20):
        while len(finalizing) < 2:
            await asyncio.sleep(0.001)
            finalizing = [each for each in asyncio.all_tasks() if each.get_name() == f"deleting all of {name}"]
    servers.views[2].hold()
    assert (await one.patch(f"{path}/a", {"metadata": {"finalizers": None}})).status == 200
    await until(one, f"{DEFINITIONS}/{name}", 404)
    await define()
    assert (await one.post(path, foo("b"))).status == 201
    servers.views[2].release()
    await asyncio.wait_for(asyncio.gather(*finalizing), 20)
    for client in (one, two):
        await until(client, f"{path}/b", 200)
        assert condition((await client.get(f"{DEFINITIONS}/{name}")).json(), "Terminating") == {}
    assert complaints(caplog) == []
