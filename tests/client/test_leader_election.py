"""Tests of leader election."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.leader_election import LeaderElector
from steersman.client.resources import LEASES
from steersman.client.transport import Fields, Response, Transport, Unreachable
from steersman.testing import Environment
from steersman.testing.clock import Clock


class Disconnectable:
    """A transport that can be disconnected."""

    def __init__(self, through: Transport) -> None:
        self._through = through
        self.is_cut = False

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        if self.is_cut:
            raise Unreachable("cut off")
        return await self._through.send(method, target, fields, body)

    async def aclose(self) -> None:
        await self._through.aclose()


class Candidate:
    """A candidate whose work never ends."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = Disconnectable(transport)
        self.leads = False
        self.elector = LeaderElector(Client(self.transport, "tests"), "kube-system", "work", name)
        self.task = asyncio.create_task(self.elector.lead(self._work))

    async def _work(self) -> None:
        self.leads = True
        try:
            await asyncio.Event().wait()
        finally:
            self.leads = False


@pytest_asyncio.fixture
async def transport() -> AsyncIterator[Transport]:
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        yield InProcessTransport(server.handler, environment.token())


async def test_one_leads_and_another_takes_over_when_it_ends(transport: Transport) -> None:
    clock = Clock()
    one = Candidate(transport, "one")
    await clock.settle()
    two = Candidate(transport, "two")
    await clock.advance(minutes=5)
    assert (one.leads, two.leads) == (True, False)
    one.task.cancel()
    await clock.advance(seconds=3)
    assert (one.leads, two.leads) == (False, True)
    lease = await Client(transport, "tests").get(LEASES, "work", "kube-system")
    assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("two", 1)
    two.task.cancel()
    await clock.settle()


async def test_who_cannot_renew_stops_before_another_begins(transport: Transport) -> None:
    clock = Clock()
    one = Candidate(transport, "one")
    await clock.settle()
    two = Candidate(transport, "two")
    await clock.advance(seconds=20)
    one.transport.is_cut = True
    both = False
    for _ in range(40):
        await clock.advance(seconds=1)
        both = both or (one.leads and two.leads)
    assert (one.leads, two.leads, both) == (False, True, False)
    assert one.task.done()
    two.task.cancel()
    await clock.settle()
