"""Repair of Services and their IPAddress objects."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.api.core.v1 import Service, ServicePort, ServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.networking.v1 import IPAddress, IPAddressSpec, ParentReference
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.registry.core.services.ip_repair import ServiceIPRepair
from steersman.rest.context import loopback
from tests.cached_objects import cached

ALLOCATED = {"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}


class Cluster:
    """A control plane whose own repair is off, a repair started by the test, and a clock."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.ahead = timedelta()
        self.use_range("10.0.0.0/24")

    def use_range(self, text: str) -> None:
        """Set the range that the server has in addition to ServiceCIDRs."""
        ranges = (ip_network(text),)
        services: Any = SimpleNamespace(objects=self.plane.objects, service_cluster_ip_ranges=ranges)
        self.repair = ServiceIPRepair(services, clock=lambda: self.ahead.total_seconds())

    async def service(self, name: str, address: str = "") -> Service:
        spec = ServiceSpec(cluster_ip=address, ports=[ServicePort(port=80)])
        service = Service(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)
        made: Service = await self.plane.objects("", "services").create(loopback("default"), service)
        return made

    async def address(
        self, address: str, service: str, labels: dict[str, str] | None = None, parent: dict[str, str] | None = None
    ) -> None:
        reference = ParentReference(
            **{"resource": "services", "namespace": "default", "name": service, **(parent or {})}
        )
        metadata = ObjectMeta(name=address, labels=ALLOCATED if labels is None else labels)
        obj = IPAddress(metadata=metadata, spec=IPAddressSpec(parent_ref=reference))
        await self.plane.objects("networking.k8s.io", "ipaddresses").create(loopback(), obj)

    async def delete_address(self, address: str) -> None:
        await self.plane.objects("networking.k8s.io", "ipaddresses").delete(loopback(name=address), address)

    async def owner(self, address: str) -> str | None:
        """Return the service that owns an address, None if there is none."""
        cached = await self.plane.objects("networking.k8s.io", "ipaddresses").get_cached("", address)
        return None if cached is None else cached.spec.parent_ref.name

    async def run_repair(self, *, later: int = 0) -> list[tuple[str, str]]:
        """Run the repair, and return the reasons and objects of all Events so far."""
        self.ahead += timedelta(seconds=later)
        self.repair.everything_changed()
        await self.repair.run()
        events = self.plane.objects("", "events").list("default")
        return sorted((event.reason, event.involved_object.name) for event in events)


@pytest.fixture
async def cluster(keys_folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    monkeypatch.setattr("steersman.controlplane.upkeep.Upkeep.follow", lambda self: None)
    monkeypatch.setattr("steersman.controlplane.upkeep.Upkeep.install", lambda self: None)
    plane = ControlPlane(Options(data_dir=keys_folder, listen=False, storage="memory", advertise_address="192.0.2.1"))
    await plane.start()
    yield Cluster(plane)
    await plane.stop()


async def test_an_address_whose_object_is_gone_gets_one(cluster: Cluster) -> None:
    await cluster.service("web", "10.0.0.9")
    await cluster.delete_address("10.0.0.9")
    assert await cluster.run_repair() == [("ClusterIPNotAllocated", "web")]
    assert await cluster.owner("10.0.0.9") == "web"
    kept = await cached(cluster.plane, "networking.k8s.io", "ipaddresses", "", "10.0.0.9")
    assert kept.metadata.labels == ALLOCATED


async def test_what_is_in_order_is_left_alone(cluster: Cluster) -> None:
    await cluster.service("web", "10.0.0.9")
    before = (await cached(cluster.plane, "networking.k8s.io", "ipaddresses", "", "10.0.0.9")).metadata.uid
    assert await cluster.run_repair(later=1000) == []
    assert (await cached(cluster.plane, "networking.k8s.io", "ipaddresses", "", "10.0.0.9")).metadata.uid == before


async def test_an_address_without_its_service_is_taken_back_after_a_minute(cluster: Cluster) -> None:
    await cluster.address("10.0.0.7", "gone")
    assert await cluster.run_repair() == []
    assert await cluster.run_repair(later=30) == []
    assert await cluster.owner("10.0.0.7") == "gone"
    cluster.ahead += timedelta(seconds=40)
    await cluster.repair.run()  # also without a change: it was too young
    assert await cluster.owner("10.0.0.7") is None
    assert await cluster.run_repair() == [("IPAddressNotAllocated", "10.0.0.7")]


async def test_an_address_is_not_old_because_a_clock_jumped(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.address("10.0.0.7", "on-its-way")
    jumped = time.time() + 7200
    monkeypatch.setattr(time, "time", lambda: jumped)
    assert await cluster.run_repair() == []
    assert await cluster.owner("10.0.0.7") == "on-its-way"


async def test_an_address_that_is_made_again_is_not_old(cluster: Cluster) -> None:
    await cluster.address("10.0.0.7", "gone")
    assert await cluster.run_repair() == []
    await cluster.delete_address("10.0.0.7")
    await cluster.address("10.0.0.7", "on-its-way")
    assert await cluster.run_repair(later=70) == []
    assert await cluster.owner("10.0.0.7") == "on-its-way"


async def test_an_address_that_its_service_does_not_have_is_taken_back_after_a_minute(cluster: Cluster) -> None:
    await cluster.service("web", "10.0.0.9")
    await cluster.address("10.0.0.7", "web")
    assert await cluster.run_repair() == []
    assert await cluster.run_repair(later=70) == [("IPAddressWrongReference", "10.0.0.7")]
    assert await cluster.owner("10.0.0.7") is None
    assert await cluster.owner("10.0.0.9") == "web"


async def test_an_address_that_no_service_made_is_left_to_who_made_it(cluster: Cluster) -> None:
    await cluster.address("10.0.0.7", "gone", labels={})
    assert await cluster.run_repair(later=1000) == []
    assert await cluster.owner("10.0.0.7") == "gone"


@pytest.mark.parametrize("parent", [{"name": "other"}, {"group": "gateway.networking.k8s.io", "resource": "gateways"}])
async def test_an_address_that_names_another_is_made_again(cluster: Cluster, parent: dict[str, str]) -> None:
    await cluster.service("web", "10.0.0.9")
    await cluster.delete_address("10.0.0.9")
    await cluster.address("10.0.0.9", "web", parent=parent)
    assert await cluster.run_repair() == [("ClusterIPNotAllocated", "web")]
    assert await cluster.owner("10.0.0.9") == "web"


async def test_labels_that_were_changed_are_put_right(cluster: Cluster) -> None:
    await cluster.service("web", "10.0.0.9")
    await cluster.delete_address("10.0.0.9")
    await cluster.address("10.0.0.9", "web", labels={"ipaddress.kubernetes.io/ip-family": "IPv6"})
    assert await cluster.run_repair() == []
    kept = await cached(cluster.plane, "networking.k8s.io", "ipaddresses", "", "10.0.0.9")
    assert kept.metadata.labels == ALLOCATED


async def test_an_address_of_two_services_stays_with_the_one_it_names(cluster: Cluster) -> None:
    await cluster.service("first", "10.0.0.9")
    await cluster.delete_address("10.0.0.9")
    await cluster.service("second", "10.0.0.9")
    assert await cluster.run_repair() == [("ClusterIPAlreadyAllocated", "first")]
    assert await cluster.owner("10.0.0.9") == "second"
    assert len(await cluster.run_repair(later=100)) == 1, "the same is not reported again at once"
    assert len(await cluster.run_repair(later=400)) == 2


async def test_an_address_out_of_all_ranges_is_told_of(cluster: Cluster) -> None:
    await cluster.service("web", "10.0.0.9")
    await cluster.plane.objects("networking.k8s.io", "servicecidrs").delete(loopback(name="kubernetes"), "kubernetes")
    cluster.use_range("192.168.0.0/24")
    assert await cluster.run_repair() == [("ClusterIPOutOfRange", "kubernetes"), ("ClusterIPOutOfRange", "web")]


async def test_services_without_addresses_need_none(cluster: Cluster) -> None:
    await cluster.service("headless", "None")
    assert await cluster.run_repair() == []
