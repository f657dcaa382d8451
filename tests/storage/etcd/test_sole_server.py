"""A server that is alone on etcd knows it, and nobody is acknowledged anything while another takes itself for alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from steersman.storage.etcd import EtcdStorage, messages
from steersman.storage.etcd.members import Members, endpoints
from steersman.storage.etcd.sole_server import SOLE_SECONDS, SoleServer, boot_seconds
from steersman.storage.interface import StorageUnavailable
from tests.storage.etcd.process import EtcdProcess

_QUIET = 1000.0
"""Seconds that are never over by themselves."""


class Server:
    """A server on an etcd; its clock may be moved."""

    def __init__(self, storage: EtcdStorage) -> None:
        self.storage = storage
        self.ahead = 0.0
        self.sole: SoleServer = storage.sole_server(
            clock=lambda: boot_seconds() + self.ahead, quiet=_QUIET, interval=0.02
        )

    async def is_alone(self) -> None:
        """Return once it is, after a long time without writes of others."""
        self.ahead += _QUIET
        await until(lambda: self.sole.is_alone)

    async def may_write(self) -> None:
        waiting = self.sole.may_write()
        if waiting is not None:
            await waiting


async def run_out(process: EtcdProcess, key: bytes) -> None:
    """End the lease of a key, as if its time was over."""
    members = Members(endpoints([process.url]))
    try:
        found = messages.read_range(await members.call(messages.RANGE, messages.range_of(key), repeatable=True))
        lease = found.items[0].lease
        await members.call(messages.LEASE_REVOKE, messages.lease_request(lease), repeatable=False)
    finally:
        members.close()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.005)


Start = Callable[[], asyncio.Task[Server]]


@pytest.fixture
async def start(etcd_process: EtcdProcess) -> AsyncIterator[Start]:
    """Starts servers on one etcd."""
    running: list[Server] = []

    async def started() -> Server:
        server = Server(await EtcdStorage.open([etcd_process.url], compaction_interval=0))
        running.append(server)
        await server.sole.start()
        return server

    yield lambda: asyncio.create_task(started())
    for each in running:
        await each.sole.stop()
        await each.storage.close()


async def test_a_server_is_alone_once_it_has_looked_for_others(start: Start) -> None:
    server = await start()
    assert not server.sole.is_alone
    await server.is_alone()
    for number in range(20):
        await server.storage.create(f"/registry/{number}", b"{}")
    assert server.sole.is_alone, "what it writes itself is no write of others"


async def test_nobody_is_acknowledged_anything_before_the_one_that_was_alone_asks_again(
    start: Start,
) -> None:
    first = await start()
    await first.is_alone()
    for number in range(3):
        second = await start()
        await second.may_write()
        assert not first.sole.is_alone
        await second.storage.create(f"/registry/{number}", b"{}")
        await second.sole.stop()
        await first.is_alone()


async def test_two_that_start_at_once_are_not_both_alone(start: Start) -> None:
    servers = await asyncio.gather(*(start() for _ in range(4)))
    for each in servers:
        await each.may_write()
    for _ in range(40):
        assert not any(each.sole.is_alone for each in servers)
        await asyncio.sleep(0.005)
    for each in servers[1:]:
        await each.sole.stop()
    await servers[0].is_alone()


async def test_a_write_past_the_servers_ends_it_as_soon_as_it_is_told_of(
    start: Start, etcd_process: EtcdProcess
) -> None:
    server = await start()
    await server.is_alone()
    foreign = await EtcdStorage.open([etcd_process.url], compaction_interval=0)
    written = await foreign.create("/registry/a", b"{}")
    await server.storage.wait_until(written.mod_revision)
    assert not server.sole.is_alone
    await server.is_alone()
    deleted = await foreign.delete("/registry/a", expected_revision=written.mod_revision)
    await server.storage.wait_until(deleted.revision)
    assert not server.sole.is_alone
    await foreign.close()


async def test_what_runs_out_with_its_lease_is_no_write_of_others(start: Start, etcd_process: EtcdProcess) -> None:
    server = await start()
    await server.storage.create("/registry/leased", b"{}", ttl=600)
    await server.is_alone()
    await run_out(etcd_process, b"/registry/leased")
    revision = await server.storage.current_revision()
    await server.storage.wait_until(revision)
    assert await server.storage.get("/registry/leased") is None
    assert server.sole.is_alone


async def test_it_is_not_alone_any_more_once_its_lease_may_have_run_out(
    start: Start, etcd_process: EtcdProcess
) -> None:
    server = await start()
    await server.is_alone()
    etcd_process.pause()
    try:
        server.ahead += SOLE_SECONDS
        assert not server.sole.is_alone
    finally:
        etcd_process.go_on()


@pytest.mark.slow
async def test_the_claim_of_one_that_was_killed_is_waited_for_and_no_longer(
    start: Start,
) -> None:
    killed = await start()
    await killed.is_alone()
    await killed.storage.close()
    began = boot_seconds()
    other = await start()
    await other.may_write()
    assert not killed.sole.is_alone
    assert boot_seconds() - began < 3 * SOLE_SECONDS


async def test_one_whose_presence_has_run_out_writes_nothing_before_it_is_present_again(
    start: Start, etcd_process: EtcdProcess
) -> None:
    absent, other = await start(), await start()
    await absent.may_write()
    await run_out(etcd_process, absent.sole.key)
    await other.is_alone()
    absent.ahead += 60
    assert not absent.sole.is_alone
    await absent.may_write()
    assert not other.sole.is_alone
    assert absent.sole.may_write() is None


async def test_no_write_is_begun_while_etcd_cannot_be_told_of_it(start: Start, etcd_process: EtcdProcess) -> None:
    server = await start()
    await server.may_write()
    etcd_process.kill()
    server.ahead += 60
    with pytest.raises(StorageUnavailable):
        await server.may_write()
    etcd_process.start()
