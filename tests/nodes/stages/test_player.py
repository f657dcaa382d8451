"""Stages that are played on a server whose clock the tests advance."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from ipaddress import IPv4Network
from typing import Any

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Node, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informers
from steersman.client.resources import EVENTS, NODES, PODS
from steersman.nodes.containers import Containers
from steersman.nodes.kubelets import Kubelets
from steersman.nodes.node_set import NodeSet
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode
from steersman.nodes.stages import applying
from steersman.nodes.stages.player import MOST_OBJECT
from steersman.nodes.stages.players import StagePlayers
from steersman.nodes.stages.stage_set import Stages
from steersman.testing import Environment
from steersman.testing.clock import Clock
from tests.nodes.stages.samples import ENDS, RUNS, Plain, selecting, stage, where


class Running:
    """A server with one simulated node and a controllable clock."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock

    async def create(self, name: str, **metadata: Any) -> None:
        spec = PodSpec(node_name="node-0", containers=[Container(name="c", image="nginx")])
        await self.client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default", **metadata), spec=spec))
        await self.clock.settle()

    async def pod(self, name: str) -> Pod:
        return await self.client.get(PODS, name, "default")

    async def phase(self, name: str) -> str:
        return (await self.pod(name)).status.phase

    async def is_gone(self, name: str) -> bool:
        return name not in [each.metadata.name for each in (await self.client.list(PODS, "default")).items]

    async def reported(self) -> list[tuple[str, str, str]]:
        await self.clock.settle()
        return [(each.type, each.reason, each.source.component) for each in (await self.client.list(EVENTS)).items]

    async def node(self) -> Node:
        return await self.client.get(NODES, "node-0")


Begin = Callable[..., Awaitable[Running]]


@pytest_asyncio.fixture
async def begin() -> AsyncIterator[Begin]:
    async with AsyncExitStack() as stack:

        async def made(*stages: Plain) -> Running:
            clock = Clock()
            environment = await stack.enter_async_context(Environment())
            server = environment.plane.server
            assert server is not None
            client = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
            informers, events = Informers(client), Broadcaster(client)
            hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
            node = SimulatedNode("node-0", 0, NodeTemplate(), hosts, ranges)
            given = Stages.parse([("test", each) for each in stages], seed=1)
            players = StagePlayers(client, informers, events, {"node-0": node}, given)
            kubelets = Kubelets(client, informers, events, NodeSet([node]), NodeServers([node], Containers()), players)
            informers.start()
            stack.push_async_callback(informers.stop)
            events.start()
            stack.push_async_callback(events.stop)
            stack.push_async_callback(kubelets.stop)
            stack.callback(clock.close)
            await kubelets.start()
            return Running(client, clock)

        yield made


async def test_a_pod_goes_from_stage_to_stage_each_after_its_delay(begin: Begin) -> None:
    running = await begin(RUNS, ENDS)
    await running.create("a")
    await running.clock.advance(seconds=4)
    assert await running.phase("a") == "Pending"
    await running.clock.advance(seconds=1.5)
    pod = await running.pod("a")
    assert (pod.status.phase, pod.status.pod_ip, pod.status.host_ip) == ("Running", "10.128.0.2", "172.16.0.2")
    assert pod.status.container_statuses[0].ready
    assert ("Normal", "Runs", "kwok_controller") in await running.reported()
    await running.client.delete(PODS, "a", "default")
    await running.clock.settle()
    assert await running.is_gone("a")


async def test_an_object_may_say_how_long_a_stage_takes(begin: Begin) -> None:
    running = await begin(RUNS, ENDS)
    await running.create("soon", annotations={"delay": "1s"})
    await running.create("late", annotations={"delay": "1h"})
    await running.clock.advance(seconds=2)
    assert [await running.phase(each) for each in ("soon", "late")] == ["Running", "Pending"]
    await running.clock.advance(hours=1)
    assert await running.phase("late") == "Running"


async def test_a_change_restarts_the_delay_and_ends_stages_that_it_leaves(begin: Begin) -> None:
    running = await begin(RUNS, ENDS)
    await running.create("a")
    await running.clock.advance(seconds=3)
    await running.client.patch(PODS, "a", "default", {"metadata": {"labels": {"x": "y"}}})
    await running.clock.advance(seconds=3)
    assert await running.phase("a") == "Pending"
    await running.client.patch(PODS, "a", "default", {"status": {"phase": "Failed"}}, subresource="status")
    await running.clock.advance(seconds=30)
    assert await running.phase("a") == "Failed"


async def test_finalizers_keep_a_pod_until_a_stage_takes_them(begin: Begin) -> None:
    frees = stage(
        "frees",
        selector=selecting(
            where(".metadata.deletionTimestamp", "Exists"), where(".metadata.finalizers[]", "In", "x.y/a")
        ),
        delay={"durationMilliseconds": 10_000},
        next={"finalizers": {"remove": [{"value": "x.y/a"}]}},
    )
    running = await begin(frees, ENDS)
    await running.create("a", finalizers=["x.y/a"])
    await running.client.delete(PODS, "a", "default")
    await running.clock.advance(seconds=5)
    assert not await running.is_gone("a")
    await running.clock.advance(seconds=6)
    assert await running.is_gone("a")


async def test_no_stage_is_played_between_two_patches_of_one(begin: Begin) -> None:
    patches = [
        {"root": "metadata", "template": 'labels: {step: "1"}'},
        {"root": "metadata", "template": 'labels: {step: "2"}'},
    ]
    between = stage("between", selector={"matchLabels": {"step": "1"}}, next={"delete": True})
    both = stage("both", selector=selecting(where(".metadata.labels.step", "DoesNotExist")), next={"patches": patches})
    running = await begin(both, between)
    await running.create("a")
    await running.clock.settle()
    assert (await running.pod("a")).metadata.labels == {"step": "2"}


async def test_the_next_stage_may_begin_at_once(begin: Begin) -> None:
    def step(number: int) -> Plain:
        return stage(
            f"step-{number}",
            selector=selecting(where(".metadata.labels.step", "In", str(number))),
            immediateNextStage=True,
            next={"patches": [{"root": "metadata", "template": f'labels: {{step: "{number + 1}"}}'}]},
        )

    running = await begin(*map(step, range(5)))
    await running.create("a", labels={"step": "0"})
    await running.clock.settle()
    assert (await running.pod("a")).metadata.labels == {"step": "5"}


async def test_a_stage_that_cannot_be_played_is_reported_once_and_retried_on_changes(begin: Begin) -> None:
    broken = stage(
        "broken",
        selector={},
        next={"statusTemplate": '{{ if .metadata.labels }}phase: Running{{ else }}{{ fail "no labels" }}{{ end }}'},
    )
    running = await begin(broken)
    await running.create("a")
    await running.clock.advance(minutes=30)
    events = [each for each in (await running.client.list(EVENTS)).items if each.reason == "StageFailed"]
    assert [(each.type, each.message, each.count) for each in events] == [
        ("Warning", "stage broken: line 1: error calling fail: no labels", 1)
    ]
    await running.client.patch(PODS, "a", "default", {"metadata": {"labels": {"x": "y"}}})
    await running.clock.settle()
    assert await running.phase("a") == "Running"


async def test_too_large_objects_are_reported(begin: Begin) -> None:
    running = await begin(RUNS)
    spec = PodSpec(
        node_name="node-0",
        containers=[
            Container(name=f"c{number}", image="nginx", command=["x" * 1000]) for number in range(MOST_OBJECT // 1000)
        ],
    )
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="large", namespace="default"), spec=spec))
    await running.clock.advance(seconds=30)
    assert await running.phase("large") == "Pending"
    assert ("Warning", "StageFailed", "kwok_controller") in await running.reported()


async def test_pods_without_a_stage_and_of_other_nodes_stay_as_they_are(begin: Begin) -> None:
    running = await begin(ENDS)
    await running.create("a")
    elsewhere = PodSpec(node_name="other", containers=[Container(name="c", image="nginx")])
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="b", namespace="default"), spec=elsewhere))
    await running.client.delete(PODS, "b", "default")
    await running.clock.advance(minutes=1)
    assert await running.phase("a") == "Pending"
    assert (await running.pod("b")).metadata.deletion_timestamp is not None


async def test_pods_of_unreachable_nodes_wait_until_the_nodes_return(begin: Begin) -> None:
    running = await begin(RUNS)
    unreachable = "simulation.steersman.dev/unreachable"
    await running.client.patch(NODES, "node-0", "", {"metadata": {"annotations": {unreachable: "true"}}})
    await running.clock.settle()
    await running.create("a", annotations={"delay": "1s"})
    await running.clock.advance(minutes=1)
    assert await running.phase("a") == "Pending"
    await running.client.patch(NODES, "node-0", "", {"metadata": {"annotations": {unreachable: None}}})
    await running.clock.advance(seconds=2)
    assert await running.phase("a") == "Running"


async def test_the_status_of_nodes_follows_stages_and_their_leases_go_on(begin: Begin) -> None:
    ready = stage(
        "ready",
        "Node",
        selector=selecting(where('.status.conditions[]? | select(.type == "Ready") | .status', "NotIn", "True")),
        delay={"durationMilliseconds": 60_000},
        next={
            "statusTemplate": """
            {{- /* all lines of it begin alike */}}
            conditions:
            {{ range NodeConditions }}
            - {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }}, message: {{ .message | Quote }},
               lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}
            {{ end }}
            phase: Running
        """
        },
    )
    running = await begin(ready)
    node = await running.node()
    assert (node.status.conditions, node.status.capacity["cpu"]) == ([], "32")
    await running.clock.advance(seconds=61)
    node = await running.node()
    assert [each.type for each in node.status.conditions][:2] == ["Ready", "MemoryPressure"]
    await running.clock.advance(minutes=11)
    assert (await running.node()).metadata.resource_version == node.metadata.resource_version
    await running.create("a")
    await running.clock.settle()
    assert await running.phase("a") == "Running"


async def test_a_stage_that_follows_itself_is_slowed_down(begin: Begin) -> None:
    counts = stage(
        "counts",
        selector={},
        next={"patches": [{"root": "metadata", "template": 'labels: {count: "{{ add1 .metadata.labels.count }}"}'}]},
        immediateNextStage=True,
    )
    running = await begin(counts)
    await running.create("a", labels={"count": "0"})
    await running.clock.advance(seconds=10)
    played = int((await running.pod("a")).metadata.labels["count"])
    assert 20 <= played <= 20 + 10 * 5 + 1


async def test_objects_that_stages_make_are_slowed_down(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "BURST", 5)
    monkeypatch.setattr(applying, "PER_SECOND", 5.0)
    made = "{apiVersion: v1, kind: Pod, metadata: {name: '{{ .metadata.name }}0'}, spec: {{ toJson .spec }}}"
    makes = stage(
        "makes",
        selector=selecting({"cel": {"expression": "!has(self.metadata.labels.made)"}}),
        steps=[{"apply": {"template": made}}, {"patch": {"root": "metadata", "template": "labels: {made: x}"}}],
    )
    running = await begin(makes)
    await running.create("p")
    await running.clock.advance(seconds=1)
    assert 5 <= len((await running.client.list(PODS, "default")).items) <= 5 + 5 + 2
