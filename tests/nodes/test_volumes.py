"""Pods on simulated nodes wait for their volumes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import IPv4Network

import pytest_asyncio

from steersman.api.core.v1 import CSIPersistentVolumeSource, Node
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import CSIDriver, CSIDriverSpec
from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informers, key_of
from steersman.client.resources import CSI_DRIVERS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from steersman.machinery.built_in.volumes import reference_to
from steersman.nodes.containers import Containers
from steersman.nodes.kubelets import Kubelets
from steersman.nodes.node_set import NodeSet
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode
from steersman.nodes.volumes import NodeVolumes
from steersman.testing import Environment
from tests.controllers.volumes.objects import claim, pod, volume
from tests.controllers.waiting import eventually

NAME = "kubernetes.io/csi/d^h"


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
        informers, events = Informers(client), Broadcaster(client)
        node = SimulatedNode("n", 0, NodeTemplate(), IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9"))
        kubelets = Kubelets(client, informers, events, NodeSet([node]), NodeServers([node], Containers()))
        informers.start()
        events.start()
        await kubelets.start()
        yield client
        await kubelets.stop()
        await events.stop()
        await informers.stop()


async def bind(client: Client) -> None:
    """Bind the claim, as the volume binder does."""
    made = await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")
    source = CSIPersistentVolumeSource(driver="d", volume_handle="h")
    await client.create(PERSISTENT_VOLUMES, volume("v", csi=source, claim_ref=reference_to(made)))
    change = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v"}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", change)
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", bound, subresource="status")


async def test_a_pod_starts_once_its_claim_is_bound_and_its_volume_attached(client: Client) -> None:
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    await client.create(PODS, pod("p", "a", "n"))

    async def waits() -> bool:
        status = (await client.get(PODS, "p", "default")).status
        conditions = {each.type: each.status for each in status.conditions}
        waiting = [each.state.waiting.reason for each in status.container_statuses if each.state.waiting is not None]
        return waiting == ["ContainerCreating"] and conditions["PodReadyToStartContainers"] == "False"

    await eventually(waits)
    await bind(client)

    async def in_use() -> list[str]:
        return (await client.get(NODES, "n")).status.volumes_in_use

    assert await eventually(in_use) == [NAME]
    assert await waits()
    attached = {"status": {"volumesAttached": [{"name": NAME, "devicePath": ""}]}}
    await client.patch(NODES, "n", "", attached, subresource="status")

    async def runs() -> bool:
        return (await client.get(PODS, "p", "default")).status.phase == "Running"

    await eventually(runs)
    await client.delete(PODS, "p", "default")

    async def let_go() -> bool:
        return await in_use() == []

    await eventually(let_go)


async def test_a_pod_whose_volume_never_comes_can_be_deleted(client: Client) -> None:
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    await client.create(PODS, pod("p", "a", "n"))

    async def seen() -> bool:
        return bool((await client.get(PODS, "p", "default")).status.start_time)

    await eventually(seen)
    await client.delete(PODS, "p", "default")

    async def gone() -> bool:
        return not (await client.list(PODS, "default")).items

    await eventually(gone)


async def test_nodes_report_volumes_in_use_even_before_events_of_their_last_change() -> None:
    """The second change comes before the first is visible in the writer's cache."""
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
        await bind(client)
        attached_first = CSIDriver(metadata=ObjectMeta(name="d"), spec=CSIDriverSpec(attach_required=True))
        await client.create(CSI_DRIVERS, attached_first)
        await client.create(NODES, Node(metadata=ObjectMeta(name="n")))
        informers = Informers(client)
        volumes = NodeVolumes(client, informers, {})
        informers.start()
        await informers.wait_until_synced()
        await informers.stop()
        user = pod("p", "a", "n")
        assert await volumes.set_up(user, "n") is None
        assert (await client.get(NODES, "n")).status.volumes_in_use == [NAME]
        await volumes.release(key_of(user), "n")
        assert (await client.get(NODES, "n")).status.volumes_in_use == []
