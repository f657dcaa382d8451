"""Simulated kubelets on a server."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from typing import Any

import pytest
import pytest_asyncio

from steersman.api.core.v1 import (
    ConfigMap,
    ConfigMapEnvSource,
    Container,
    EmptyDirVolumeSource,
    EnvFromSource,
    ExecAction,
    HostPathVolumeSource,
    KeyToPath,
    LocalObjectReference,
    Pod,
    PodSpec,
    Probe,
    ResourceRequirements,
    Secret,
    SecretVolumeSource,
    Volume,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informers
from steersman.client.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, SECRETS
from steersman.nodes import kubelets as kubelets_module
from steersman.nodes.container_status import image_name
from steersman.nodes.containers import Containers
from steersman.nodes.context import PodContext
from steersman.nodes.images import size_of
from steersman.nodes.kubelets import Kubelets
from steersman.nodes.node_set import Networks, NodeSet
from steersman.nodes.pod_life import PodSyncResult, sync_pod
from steersman.nodes.rehearsal import Unknown
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode
from steersman.testing import Environment
from steersman.testing.clock import Clock


class Running:
    """A server with simulated nodes and a controllable clock."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock

    async def pod(self, name: str, *command: str, node: str = "node-0", restart: str = "Always") -> None:
        container = Container(name="c", image="nginx", command=list(command))
        spec = PodSpec(node_name=node, containers=[container], restart_policy=restart)
        await self.client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        await self.clock.settle()

    async def phases(self) -> dict[str, str]:
        return {each.metadata.name: each.status.phase for each in (await self.client.list(PODS)).items}


@asynccontextmanager
async def nodes_of(client: Client, template: NodeTemplate = NodeTemplate()) -> AsyncIterator[None]:  # noqa: B008
    """Run two simulated nodes."""
    informers, events = Informers(client), Broadcaster(client)
    hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    nodes = [SimulatedNode(f"node-{number}", number, template, hosts, ranges) for number in range(2)]
    kubelets = Kubelets(
        client, informers, events, NodeSet(nodes, Networks(hosts, ranges)), NodeServers(nodes, Containers())
    )
    informers.start()
    events.start()
    await kubelets.start()
    yield
    await kubelets.stop()
    await events.stop()
    await informers.stop()


@asynccontextmanager
async def client_without_nodes() -> AsyncIterator[Client]:
    """Return a client of a server without nodes."""
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        yield Client(InProcessTransport(server.handler, environment.token()), "kubelet")


@pytest_asyncio.fixture
async def running() -> AsyncIterator[Running]:
    clock = Clock()
    async with client_without_nodes() as client, nodes_of(client):
        yield Running(client, clock)


async def test_after_a_restart_no_pod_is_given_the_address_of_another() -> None:
    clock = Clock()
    async with client_without_nodes() as client:
        running = Running(client, clock)
        async with nodes_of(client):
            await running.pod("z")
        await running.pod("a")
        async with nodes_of(client):
            await clock.settle()
            addresses = {each.metadata.name: each.status.pod_ip for each in (await client.list(PODS)).items}
            assert addresses == {"a": "10.128.0.3", "z": "10.128.0.2"}


async def test_nodes_register_and_renew_their_leases(running: Running) -> None:
    nodes = (await running.client.list(NODES)).items
    assert [each.metadata.name for each in nodes] == ["node-0", "node-1"]
    assert {each.type: each.status for each in nodes[0].status.conditions}["Ready"] == "True"
    before = (await running.client.list(LEASES, "kube-node-lease")).items
    await running.clock.advance(seconds=11)
    after = (await running.client.list(LEASES, "kube-node-lease")).items
    assert all(
        (one.spec.renew_time or "") < (two.spec.renew_time or "") for one, two in zip(before, after, strict=True)
    )
    heartbeat = nodes[0].status.conditions[0].last_heartbeat_time or ""
    await running.clock.advance(minutes=6)
    again = (await running.client.get(NODES, "node-0")).status.conditions[0].last_heartbeat_time or ""
    assert again > heartbeat


async def test_pods_run_end_and_go(running: Running) -> None:
    await running.pod("stays")
    await running.pod("ends", "sleep", "60", node="node-1", restart="Never")
    assert await running.phases() == {"stays": "Running", "ends": "Running"}
    await running.clock.advance(seconds=61)
    assert await running.phases() == {"stays": "Running", "ends": "Succeeded"}
    addresses = {each.metadata.name: each.status.pod_ip for each in (await running.client.list(PODS)).items}
    assert addresses == {"stays": "10.128.0.2", "ends": "10.128.1.2"}
    await running.client.delete(PODS, "stays", "default")
    await running.clock.settle()
    assert await running.phases() == {"ends": "Succeeded"}
    reasons = [
        each.reason for each in (await running.client.list(EVENTS)).items if each.involved_object.name == "stays"
    ]
    assert reasons == ["Pulling", "Pulled", "Created", "Started", "Killing"]


async def test_a_written_status_needs_no_further_sync(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def counted(pod: Pod, place: PodContext, now: float) -> PodSyncResult:
        synced.append(pod.metadata.name)
        return sync_pod(pod, place, now)

    monkeypatch.setattr(kubelets_module, "sync_pod", counted)
    await running.pod("stays")
    await running.pod("ends", "sleep", "60", restart="Never")
    assert synced.count("stays") == 1
    await running.client.patch(PODS, "stays", "default", {"metadata": {"labels": {"a": "b"}}})
    await running.clock.settle()
    assert synced.count("stays") == 2
    await running.clock.advance(seconds=61)
    assert await running.phases() == {"stays": "Running", "ends": "Succeeded"}


async def test_pods_of_other_nodes_are_left_alone(running: Running) -> None:
    await running.pod("elsewhere", node="another")
    assert await running.phases() == {"elsewhere": "Pending"}


async def test_a_node_out_of_reach_is_silent_and_does_nothing(running: Running) -> None:
    await running.pod("a")
    mark = {"metadata": {"annotations": {"simulation.steersman.dev/unreachable": "true"}}}
    await running.client.patch(NODES, "node-0", "", mark)
    await running.clock.settle()
    before = {each.metadata.name: each.spec.renew_time for each in (await running.client.list(LEASES)).items}
    await running.pod("b")
    await running.clock.advance(seconds=15)
    after = {each.metadata.name: each.spec.renew_time for each in (await running.client.list(LEASES)).items}
    assert before["node-0"] == after["node-0"]
    assert before["node-1"] != after["node-1"]
    assert await running.phases() == {"a": "Running", "b": "Pending"}
    await running.client.patch(NODES, "node-0", "", {"metadata": {"annotations": None}})
    await running.clock.settle()
    again = await running.client.get(LEASES, "node-0", "kube-node-lease")
    assert (again.spec.renew_time or "") > (before["node-0"] or "")
    assert await running.phases() == {"a": "Running", "b": "Running"}


async def test_a_condition_says_no_more_than_what_is_so(running: Running) -> None:
    container = Container(
        name="c", image="nginx", readiness_probe=Probe(initial_delay_seconds=5, exec=ExecAction(command=["true"]))
    )
    spec = PodSpec(node_name="node-0", containers=[container])
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    await running.clock.advance(seconds=1)

    async def ready() -> tuple[str, str, str]:
        status = (await running.client.get(PODS, "p", "default")).status
        return next((each.status, each.reason, each.message) for each in status.conditions if each.type == "Ready")

    assert await ready() == ("False", "ContainersNotReady", "containers with unready status: [c]")
    await running.clock.advance(seconds=5)
    assert await ready() == ("True", "", "")


async def events_of(running: Running, name: str) -> list[tuple[str, str, int]]:
    """Return the events of a pod: reason, message and count."""
    events = (await running.client.list(EVENTS)).items
    return [(each.reason, each.message, each.count) for each in events if each.involved_object.name == name]


async def waiting_reason(running: Running, name: str) -> tuple[str, str]:
    status = (await running.client.get(PODS, name, "default")).status
    waiting = status.container_statuses[0].state.waiting
    return ("", "") if waiting is None else (waiting.reason, waiting.message)


async def test_a_container_waits_for_the_config_map_of_its_variables(running: Running) -> None:
    container = Container(
        name="c", image="nginx", env_from=[EnvFromSource(config_map_ref=ConfigMapEnvSource(name="settings"))]
    )
    spec = PodSpec(node_name="node-0", containers=[container])
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    await running.clock.settle()
    assert await waiting_reason(running, "p") == ("CreateContainerConfigError", 'configmap "settings" not found')
    assert (await running.phases())["p"] == "Pending"
    await running.clock.advance(seconds=16)
    failed = [each for each in await events_of(running, "p") if each[0] == "Failed"]
    assert failed == [("Failed", 'Error: configmap "settings" not found', 2)]
    await running.client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="settings", namespace="default")))
    await running.clock.settle()
    assert (await running.phases())["p"] == "Running"


async def test_a_pod_waits_for_the_secret_of_its_volume(running: Running) -> None:
    items = [KeyToPath(key="password", path="password")]
    spec = PodSpec(
        node_name="node-0",
        containers=[Container(name="c", image="nginx")],
        volumes=[Volume(name="v", secret=SecretVolumeSource(secret_name="s", items=items))],
    )
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    await running.clock.advance(seconds=4)
    assert await waiting_reason(running, "p") == ("ContainerCreating", "")
    text = 'MountVolume.SetUp failed for volume "v" : secret "s" not found'
    assert await events_of(running, "p") == [("FailedMount", text, 4)]
    secret = Secret(metadata=ObjectMeta(name="s", namespace="default"))
    await running.client.create(SECRETS, secret)
    await running.clock.advance(seconds=4)
    assert (await events_of(running, "p"))[1][:2] == (
        "FailedMount",
        'MountVolume.SetUp failed for volume "v" : references non-existent secret key: password',
    )
    await running.client.patch(SECRETS, "s", "default", {"data": {"password": "cGFzc3dvcmQ="}})
    await running.clock.settle()
    assert (await running.phases())["p"] == "Running"


async def test_a_pod_gets_one_event_that_its_secret_may_never_be_created(running: Running) -> None:
    items = [KeyToPath(key="tls.key", path="key")]
    spec = PodSpec(
        node_name="node-0",
        containers=[
            Container(name="c", image="nginx", env_from=[EnvFromSource(config_map_ref=ConfigMapEnvSource(name="m"))])
        ],
        volumes=[
            Volume(name="v", secret=SecretVolumeSource(secret_name="s", items=items)),
            Volume(name="o", secret=SecretVolumeSource(secret_name="o", optional=True)),
        ],
    )
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    await running.clock.advance(seconds=4)
    assert [each for each in await events_of(running, "p") if each[0] == "NotSimulated"] == []
    await running.clock.advance(seconds=60)
    [(_, text, times)] = [each for each in await events_of(running, "p") if each[0] == "NotSimulated"]
    assert times == 1
    assert text.startswith('not there: secret "s", configmap "m". ')
    assert "(kubectl create secret generic s --namespace=default --from-literal=tls.key=...)" in text


async def test_the_switch_of_a_node_holds_for_commands_that_are_followed() -> None:
    clock = Clock()
    async with client_without_nodes() as client, nodes_of(client, NodeTemplate(unknown_programs=Unknown.FAIL)):
        running = Running(client, clock)
        await create_with_volume(
            running, "p", "tool; echo $? > /d/f; exit $(cat /d/f)", Volume(name="d", empty_dir=EmptyDirVolumeSource())
        )
        status = (await client.get(PODS, "p", "default")).status
        assert status.container_statuses[0].state.terminated is not None
        assert status.container_statuses[0].state.terminated.exit_code == 127


async def create_with_volume(running: Running, name: str, script: str, volume: Volume, **spec: Any) -> None:
    """Create a pod whose container has a volume at /d."""
    container = Container(
        name="c", image="nginx", command=["sh", "-c", script], volume_mounts=[VolumeMount(name="d", mount_path="/d")]
    )
    spec = {"restart_policy": "Never", **spec}
    pod = PodSpec(node_name="node-0", containers=[container], volumes=[volume], **spec)
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=pod))
    await running.clock.settle()


async def test_a_pod_that_writes_too_much_is_evicted(running: Running) -> None:
    volume = Volume(name="d", empty_dir=EmptyDirVolumeSource(size_limit="1Ki"))
    await create_with_volume(running, "p", "sleep 5; seq 1 400 > /d/f; sleep 1000", volume)
    assert (await running.phases())["p"] == "Running"
    await running.clock.advance(seconds=8)
    status = (await running.client.get(PODS, "p", "default")).status
    text = 'Usage of EmptyDir volume "d" exceeds the limit "1Ki". '
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", text)
    assert ("Evicted", text, 1) in await events_of(running, "p")


async def test_files_on_a_node_outlive_a_pod_and_those_of_a_pod_do_not(running: Running) -> None:
    host = Volume(name="d", host_path=HostPathVolumeSource(path="/data"))
    own = Volume(name="d", empty_dir=EmptyDirVolumeSource())
    for volume, found in ((host, "Succeeded"), (own, "Failed")):
        await create_with_volume(running, "p", "echo a > /d/f", volume)
        await running.client.delete(PODS, "p", "default")
        await running.clock.settle()
        await create_with_volume(running, "p", "test -f /d/f", volume)
        assert (await running.phases())["p"] == found
        await running.client.delete(PODS, "p", "default")
        await running.clock.settle()


async def test_a_full_volume_is_reported(running: Running) -> None:
    script = 'x=$(seq 1 999); for i in $(seq 1 90); do echo "$x$x$x$x" > /d/$i; done; sleep 1000'
    await create_with_volume(running, "p", script, Volume(name="d", empty_dir=EmptyDirVolumeSource()), host_pid=True)
    await running.clock.advance(seconds=2)
    events = await events_of(running, "p")
    assert ("VolumeFull", 'Volume "d" is full: simulated volumes hold 1048576 bytes of files', 1) in events
    assert ("NotSimulated", "no effect on a simulated node: spec.hostPID", 1) in events


async def test_a_missing_pull_secret_is_reported(running: Running) -> None:
    await running.client.create(SECRETS, Secret(metadata=ObjectMeta(name="there", namespace="default")))
    spec = PodSpec(
        node_name="node-0",
        containers=[Container(name="c", image="nginx")],
        image_pull_secrets=[LocalObjectReference(name="there"), LocalObjectReference(name="none")],
    )
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    await running.clock.settle()
    assert (await running.phases())["p"] == "Running"
    text = "Unable to retrieve some image pull secrets (none); attempting to pull the image may not succeed."
    assert ("FailedToRetrieveImagePullSecret", text, 1) in await events_of(running, "p")


async def test_an_image_is_pulled_once_for_a_node(running: Running) -> None:
    container = Container(name="c", image="nginx:1.29")
    for name in ("first", "second"):
        spec = PodSpec(node_name="node-0", containers=[container])
        await running.client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        await running.clock.settle()
    texts = {name: [text for _, text, _ in await events_of(running, name)] for name in ("first", "second")}
    size = size_of(image_name("nginx:1.29"))
    assert texts["first"][:2] == [
        'Pulling image "nginx:1.29"',
        f'Successfully pulled image "nginx:1.29" in 0s (0s including waiting). Image size: {size} bytes.',
    ]
    assert texts["second"][0] == (
        'Container image "nginx:1.29" already present on machine and can be accessed by the pod'
    )
    await running.clock.advance(minutes=6)
    images = (await running.client.get(NODES, "node-0")).status.images
    assert [(each.names, each.size_bytes) for each in images] == [(["docker.io/library/nginx:1.29"], size)]


async def test_a_pod_that_does_not_fit_is_refused(running: Running) -> None:
    container = Container(name="c", image="nginx", resources=ResourceRequirements(requests={"cpu": "20"}))
    for name in ("first", "second"):
        spec = PodSpec(node_name="node-0", containers=[container])
        await running.client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
    await running.clock.settle()
    text = "Node didn't have enough resource: cpu, requested: 20000, used: 20000, capacity: 32000"
    status = (await running.client.get(PODS, "second", "default")).status
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", f"Pod was rejected: {text}")
    assert await events_of(running, "second") == [("OutOfcpu", text, 1)]
    await running.client.delete(PODS, "first", "default")
    await running.clock.settle()
    spec = PodSpec(node_name="node-0", containers=[container])
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="third", namespace="default"), spec=spec))
    await running.clock.settle()
    assert await running.phases() == {"second": "Failed", "third": "Running"}


async def test_pods_go_one_after_the_other_from_a_node_under_pressure(running: Running) -> None:
    await running.pod("a")
    await running.pod("b")
    mark = {"metadata": {"annotations": {"simulation.steersman.dev/memory-pressure": "true"}}}
    await running.client.patch(NODES, "node-0", "", mark)
    await running.clock.advance(seconds=3)
    node = await running.client.get(NODES, "node-0")
    assert ("True", "KubeletHasInsufficientMemory") in [(each.status, each.reason) for each in node.status.conditions]
    assert sorted((await running.phases()).values()) == ["Failed", "Running"]
    gone = next(each for each in (await running.client.list(PODS)).items if each.status.phase == "Failed").status
    assert (gone.reason, gone.message) == (
        "Evicted",
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. Container c was "
        "using 16Mi, request is 0, has larger consumption of memory. ",
    )
    assert ("DisruptionTarget", "True", "TerminationByKubelet") in [
        (each.type, each.status, each.reason) for each in gone.conditions
    ]
    await running.pod("c")
    assert (await running.client.get(PODS, "c", "default")).status.message == (
        "Pod was rejected: The node had condition: [MemoryPressure]. "
    )
    await running.clock.advance(seconds=10)
    assert await running.phases() == {"a": "Failed", "b": "Failed", "c": "Failed"}
    await running.client.patch(NODES, "node-0", "", {"metadata": {"annotations": None}})
    await running.clock.settle()
    await running.pod("d")
    assert (await running.phases())["d"] == "Running"
    reasons = [each[0] for each in await events_of(running, "node-0")]
    assert reasons == ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"]


@pytest.mark.parametrize(("containers", "beside"), [(3, False), (30, True)])
async def test_a_pod_of_many_containers_is_synced_in_a_thread(
    running: Running, monkeypatch: pytest.MonkeyPatch, containers: int, *, beside: bool
) -> None:
    threads: set[bool] = set()

    def noted(pod: Pod, place: PodContext, now: float) -> PodSyncResult:
        threads.add(threading.current_thread() is not threading.main_thread())
        return sync_pod(pod, place, now)

    monkeypatch.setattr(kubelets_module, "sync_pod", noted)
    given = [Container(name=f"c{number}", image="i", command=["sleep", "9"]) for number in range(containers)]
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(node_name="node-0", containers=given))
    await running.client.create(PODS, pod)
    await running.clock.settle()
    assert await running.phases() == {"p": "Running"}
    assert threads == {beside}
