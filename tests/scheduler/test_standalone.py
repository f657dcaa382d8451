"""The scheduler as a client of another server."""

from __future__ import annotations

import asyncio

from steersman.api.core.v1 import Container, Node, NodeStatus, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import EVENTS, LEASES, NODES, PODS
from steersman.scheduler.standalone import Standalone
from steersman.testing import Environment
from tests.controllers.waiting import eventually


async def test_it_decides_while_it_leads() -> None:
    async with Environment(listen=True) as environment:
        client = Client(TLSTransport.from_kubeconfig(environment.kubeconfig()), "tests")
        status = NodeStatus(capacity={"pods": "10"}, allocatable={"pods": "10"})
        await client.create(NODES, Node(metadata=ObjectMeta(name="n"), status=status))
        await client.patch(NODES, "n", "", {"spec": {"taints": None}})
        container = Container(name="c", image="i")
        pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(containers=[container]))
        await client.create(PODS, pod)
        transport = TLSTransport.from_kubeconfig(environment.kubeconfig())
        working = asyncio.ensure_future(Standalone().run(transport))

        async def decided() -> bool:
            return (await client.get(PODS, "p", "default")).spec.node_name == "n"

        await eventually(decided)
        held = await client.get(LEASES, "kube-scheduler", "kube-system")
        assert held.spec.holder_identity
        working.cancel()
        await asyncio.wait([working])
        lease = await client.get(LEASES, "kube-scheduler", "kube-system")
        assert lease.spec.holder_identity == ""
        reported = [
            each for each in (await client.list(EVENTS, "kube-system")).items if each.reason == "LeaderElection"
        ]
        assert reported[0].message == f"{held.spec.holder_identity} became leader"
        assert reported[0].source.component == "default-scheduler"
        await client.aclose()
