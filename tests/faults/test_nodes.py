"""Faults of kubelets and of their leases, in a cluster whose time the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from steersman.faults.fault import InvalidFault
from steersman.testing import Client, Environment
from steersman.testing.faults import Faults

PODS = "/api/v1/namespaces/default/pods"


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    async with Environment(nodes=2, clock=True) as running:
        yield running


@pytest.fixture
def client(environment: Environment) -> Client:
    return environment.client()


@pytest.fixture
def faults(environment: Environment) -> Faults:
    return environment.faults


async def ready(client: Client, node: str) -> tuple[str, str]:
    """Return status and reason of a node's condition Ready."""
    conditions = (await client.get(f"/api/v1/nodes/{node}")).json()["status"]["conditions"]
    return next((each["status"], each["reason"]) for each in conditions if each["type"] == "Ready")


async def phase(client: Client, name: str) -> str:
    return str((await client.get(f"{PODS}/{name}")).json()["status"]["phase"])


def pod(name: str, node: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}


async def test_a_silent_node_is_not_ready_after_its_grace(
    environment: Environment, client: Client, faults: Faults
) -> None:
    clock = environment.clock
    assert [await ready(client, each) for each in ("node-0", "node-1")] == [("True", "KubeletReady")] * 2
    with faults.add(node="node-0", silence_node=True) as fault:
        await clock.advance(seconds=30)
        assert (await ready(client, "node-0"))[0] == "True"
        await client.post(PODS, pod("a", "node-0"))
        await clock.advance(seconds=40)
        assert await ready(client, "node-0") == ("Unknown", "NodeStatusUnknown")
        assert await ready(client, "node-1") == ("True", "KubeletReady")
        assert await phase(client, "a") == "Pending"
        assert [(each.verb, each.name) for each in fault.last] == [("silence", "node-0")]
    await clock.advance(seconds=15)
    assert await ready(client, "node-0") == ("True", "KubeletReady")
    assert await phase(client, "a") == "Running"


async def test_a_node_whose_lease_is_not_renewed_reports_when_it_is_given_up(
    environment: Environment, client: Client, faults: Faults
) -> None:
    lease: dict[str, Any] = {"verb": ["update", "patch"], "resource": "leases.coordination.k8s.io", "name": "node-0"}
    with faults.add(namespace="kube-node-lease", code=500, **lease) as fault:
        seen = set()
        for _ in range(30):
            await environment.clock.advance(seconds=5)
            seen.add(await ready(client, "node-0"))
        assert seen == {("True", "KubeletReady"), ("Unknown", "NodeStatusUnknown")}
        assert fault.injected > 10


async def test_the_status_of_a_slow_node_s_pods_comes_late(
    environment: Environment, client: Client, faults: Faults
) -> None:
    fault = faults.add(node="node-*", delay_syncs=60)
    await client.post(PODS, pod("a", "node-1"))
    await environment.clock.advance(seconds=50)
    assert await phase(client, "a") == "Pending"
    await environment.clock.advance(seconds=15)
    assert await phase(client, "a") == "Running"
    assert await ready(client, "node-1") == ("True", "KubeletReady")
    await client.post(PODS, pod("b", "node-1"))
    await environment.clock.advance(seconds=10)
    assert await phase(client, "b") == "Pending"
    fault.remove()
    await environment.clock.settle()
    assert await phase(client, "b") == "Running"
    assert {each.verb for each in fault.last} == {"delay"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"node": "a", "code": 500}, "the effect of a fault of nodes is effect.node"),
        ({"node": "a", "silence_node": True, "verb": "get"}, "match.nodes: goes with no other list"),
        ({"node": "a", "silence_node": True, "times": 2}, "has only when.for"),
        ({"silence_node": True}, "effect.node: needs match.nodes"),
        ({"node": "a", "delay_syncs": 4000}, "effect.node.delay: not between"),
    ],
)
async def test_mixtures_are_refused(faults: Faults, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFault, match=message):
        faults.add(**wanted)


async def test_a_server_alone_has_no_nodes() -> None:
    async with Environment() as environment:
        with pytest.raises(InvalidFault, match="no simulated nodes"):
            environment.faults.add(node="a", silence_node=True)
