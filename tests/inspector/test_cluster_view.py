"""Tests of the figures of nodes and pods: they agree with the objects after any changes."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from contextlib import aclosing
from typing import Any

import pytest

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import NODES, PODS
from steersman.client.transport import Unreachable
from steersman.inspector.cluster_view import ClusterView
from steersman.inspector.source import SourceFailed
from steersman.machinery.errors.status import StatusError
from steersman.testing import Environment, User
from tests.inspector.front_client import ScriptedAnswer, ScriptedServer, Visit

ENDED = ("Succeeded", "Failed")


def node(name: str, **options: Any) -> core.Node:
    status = core.NodeStatus(
        allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"},
        conditions=[core.NodeCondition(type="Ready", status="True")],
    )
    return core.Node(metadata=ObjectMeta(name=name, **options), status=status)


def pod(name: str, at: str = "", milli: int = 100) -> core.Pod:
    requests = core.ResourceRequirements(requests={"cpu": f"{milli}m", "memory": f"{milli}Mi"})
    container = core.Container(name="a", image="b", resources=requests)
    # without the service account's admission, as no controllers run
    return core.Pod(
        metadata=ObjectMeta(name=name, namespace="default", labels={"a": "b"}, annotations={"c": "<script>"}),
        spec=core.PodSpec(node_name=at, containers=[container], automount_service_account_token=False),
    )


class Screen:
    """State of a page that reads the figures."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.last: dict[str, Any] = {}

    def take(self, lines: list[bytes]) -> None:
        """Apply lines."""
        for line in lines:
            self.last = json.loads(line)
            self.nodes |= {each["name"]: each for each in self.last["nodes"]}
            for name in self.last["gone"]:
                self.nodes.pop(name, None)

    async def read(self, view: ClusterView) -> None:
        """Read until cancelled."""
        async with aclosing(view.read()) as batches:
            async for lines in batches:
                self.take(lines)


def requested(pod: core.Pod) -> str:
    """Return the CPU that a pod of `pod` requests."""
    assert pod.spec.containers
    return pod.spec.containers[0].resources.requests["cpu"]


def figures_of(nodes: list[core.Node], pods: list[core.Pod]) -> dict[str, Any]:
    """Return the figures that a page should show, computed from the objects."""
    figures: dict[str, Any] = {}
    for each in nodes:
        own = [every for every in pods if every.spec.node_name == each.metadata.name]
        running = [every for every in own if every.status.phase not in ENDED]
        milli = [int(requested(every).removesuffix("m")) for every in running]
        phases = Counter(
            "Terminating" if every.metadata.deletion_timestamp and every in running else every.status.phase
            for every in own
        )
        figures[each.metadata.name] = (sum(milli), sum(milli) << 20, dict(phases), each.spec.unschedulable)
    return figures


def shown_by(screen: Screen) -> dict[str, Any]:
    return {
        name: (each["cpu"]["requested"], each["memory"]["requested"], each["phases"], each["cordoned"])
        for name, each in screen.nodes.items()
    }


async def agreed(screen: Screen, client: Client) -> None:
    """Wait until a page shows the figures of all objects."""
    wanted: tuple[Any, ...] = ()
    try:
        async with asyncio.timeout(10):
            while True:
                pods = (await client.list(PODS)).items
                figures = figures_of((await client.list(NODES)).items, pods)
                unplaced = sum(not each.spec.node_name and each.status.phase not in ENDED for each in pods)
                wanted = figures, unplaced, len(pods), True
                last = screen.last
                if last and wanted == (
                    shown_by(screen),
                    last["unplaced"],
                    sum(last["phases"].values()),
                    last["synced"],
                ):
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError((wanted, shown_by(screen), screen.last)) from None


@pytest.mark.parametrize("seed", range(3))
async def test_figures_agree_with_the_objects_after_random_changes(client: Client, seed: int) -> None:
    """Nodes and pods come, change and go; pods stay behind on nodes that are gone, and pages come and go."""
    chance = random.Random(seed)
    view = ClusterView(client)
    pages: list[tuple[Screen, asyncio.Task[None]]] = []
    nodes: list[str] = []
    pods: list[str] = []
    numbers = iter(range(1_000))

    def open_page() -> None:
        screen = Screen()
        pages.append((screen, asyncio.create_task(screen.read(view))))

    async def close_page() -> None:
        task = pages.pop(chance.randrange(len(pages)))[1]
        task.cancel()
        await asyncio.wait([task])

    for step in range(120):
        action = chance.randrange(10)
        if action == 0 or not nodes:
            nodes.append(f"node-{next(numbers) if chance.random() < 0.8 else 0}")
            if nodes[-1] in nodes[:-1]:
                nodes.pop()
            else:
                await client.create(NODES, node(nodes[-1]))
        elif action == 1:
            await client.delete(NODES, nodes.pop(chance.randrange(len(nodes))))
        elif action == 2:
            name = chance.choice(nodes)
            await client.patch(NODES, name, "", {"spec": {"unschedulable": chance.random() < 0.5}})
        elif action < 6 or not pods:
            pods.append(f"pod-{next(numbers)}")
            at = chance.choice([*nodes, "", "node-0", "gone"])
            finalizers = ["example.com/a"] if chance.random() < 0.3 else []
            made = pod(pods[-1], at, chance.randrange(1, 500))
            made.metadata.finalizers = finalizers
            await client.create(PODS, made)
        elif action == 6:
            name = chance.choice(pods)
            await client.delete(PODS, name, "default")
            if not (found := await client.find(PODS, name, "default")) or not found.metadata.finalizers:
                pods.remove(name)
        elif action == 7:
            phase = chance.choice(["Pending", "Running", "Succeeded", "Failed"])
            if (found := await client.find(PODS, chance.choice(pods), "default")) and found.status.phase not in ENDED:
                await client.patch(
                    PODS, found.metadata.name, "default", {"status": {"phase": phase}}, subresource="status"
                )
        elif action == 8:
            open_page()
        elif pages:
            await close_page()
        if step % 40 == 39:
            open_page()
            await asyncio.gather(*(agreed(screen, client) for screen, _ in pages))
    while pages:
        await close_page()
    assert not [each for each in asyncio.all_tasks() if "informer" in each.get_name()]


async def test_the_last_page_stops_the_watches(client: Client) -> None:
    view = ClusterView(client)
    await client.create(NODES, node("a"))

    def watches() -> int:
        return sum("informer" in each.get_name() for each in asyncio.all_tasks())

    first, second = view.read(), view.read()
    await anext(first)
    assert watches() == 2
    await anext(second)
    assert watches() == 2
    await first.aclose()
    assert watches() == 2
    await second.aclose()
    assert watches() == 0


async def test_nothing_is_left_of_the_time_before_a_pause(client: Client) -> None:
    view = ClusterView(client)
    await client.create(NODES, node("a"))
    await client.create(PODS, pod("x", "a"))
    screen = Screen()
    reading = asyncio.create_task(screen.read(view))
    await agreed(screen, client)
    reading.cancel()
    await client.delete(PODS, "x", "default")  # the watch that ends may still see it
    await asyncio.wait([reading])
    await client.delete(NODES, "a")
    await client.create(NODES, node("b"))
    screen = Screen()
    reading = asyncio.create_task(screen.read(view))
    await agreed(screen, client)
    assert set(screen.nodes) == {"b"}
    assert screen.last["phases"] in ({}, {"Terminating": 1})
    reading.cancel()
    await asyncio.wait([reading])


async def test_an_empty_cluster_is_told_as_empty(client: Client) -> None:
    async with asyncio.timeout(5), aclosing(ClusterView(client).read()) as batches:
        (line,) = await anext(batches)
    assert json.loads(line) == {"nodes": [], "gone": [], "phases": {}, "unplaced": 0, "synced": True}


async def test_a_refused_reader_is_told_why(visit: Visit) -> None:
    """The page gets the error instead of waiting, and again at each attempt."""
    async with Environment(users=[User("joe", groups=("system:authenticated",))]) as environment:
        server = environment.plane.server
        assert server is not None
        page = await (await visit(InProcessTransport(server.handler, environment.token("joe")))).channel()
        for number in (1, 2, 3):
            await page.open(number, source="cluster")
        ends = {message["id"]: message["end"] for message in [await page.next() for _ in range(3)]}
        assert set(ends) == {1, 2, 3}
        for end in ends.values():
            assert end["code"] == 403
            assert ' is forbidden: User "joe" cannot watch resource' in end["message"]
        await page.open(1, source="cluster")
        assert (await page.end_of(1))["code"] == 403
        await page.open(2, source="rates")
        (line,) = await page.lines(2)
        assert 'cannot get path "/metrics"' in line["error"]


@pytest.mark.parametrize(
    ("error", "status"),
    [(Unreachable("connection refused"), 503), (StatusError(401, "Unauthorized", "Unauthorized"), 401)],
)
async def test_a_view_fails_for_all_readers_and_the_next_one_tries_again(error: Exception, status: int) -> None:
    server = ScriptedServer(error)
    view = ClusterView(Client(server, "tests"))

    async def read() -> None:
        async with aclosing(view.read()) as batches:
            async for _ in batches:
                pass

    for _ in range(2):
        results = await asyncio.gather(*(read() for _ in range(3)), return_exceptions=True)
        assert [(type(each), getattr(each, "status", 0), str(each)) for each in results] == [
            (SourceFailed, status, str(error))
        ] * 3
        assert not [each for each in asyncio.all_tasks() if "informer" in each.get_name()]


async def test_a_watch_that_breaks_later_is_told() -> None:
    """A page with old figures and no word about it would mislead."""
    annotations = {"k8s.io/initial-events-end": "true"}
    end = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5", "annotations": annotations}}}
    answer = ScriptedAnswer(pieces=[json.dumps(end).encode() + b"\n", Unreachable("cut off")])
    reading = Screen().read(ClusterView(Client(ScriptedServer(answer), "tests")))
    with pytest.raises(SourceFailed, match="cut off"):
        await reading


async def test_amounts_of_a_node_are_in_millicores_and_bytes(client: Client) -> None:
    await client.create(NODES, node("a"))
    view = ClusterView(client)
    screen = Screen()
    reading = asyncio.create_task(screen.read(view))
    await client.create(PODS, pod("x", "a", 250))
    await agreed(screen, client)
    assert screen.nodes["a"]["cpu"] == {"allocatable": 4000, "requested": 250, "used": None}
    assert screen.nodes["a"]["mostPods"] == 110
    reading.cancel()
    await asyncio.wait([reading])
