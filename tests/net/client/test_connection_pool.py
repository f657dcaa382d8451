"""The client's connection pool."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from steersman.net.client import connection_pool
from steersman.net.client.connection_pool import ConnectionPool
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.upgrade import UpgradedConnection


class Connection:
    """The members of a connection that the pool uses."""

    def __init__(self) -> None:
        self.is_idle = True
        self.protocol = "http/1.1"
        self.closed = 0
        self.is_closed = asyncio.Event()

    def hang_up(self) -> None:
        self.closed += 1
        self.is_closed.set()
        self.is_idle = False


class Dialer:
    """Creates connections and records them."""

    def __init__(self) -> None:
        self.made: list[Connection] = []

    async def __call__(self) -> UpgradedConnection:
        self.made.append(Connection())
        return cast(UpgradedConnection, self.made[-1])


async def taken_from(pool: ConnectionPool) -> UpgradedConnection:
    """Take an HTTP/1.1 connection from the pool."""
    connection, _ = await pool.acquire()
    assert not isinstance(connection, Http2Connection)
    return connection


@pytest.fixture
def dial() -> Dialer:
    return Dialer()


@pytest.fixture
def connections(dial: Dialer) -> ConnectionPool:
    return ConnectionPool(dial)


async def test_one_that_was_given_back_is_taken_again(connections: ConnectionPool, dial: Dialer) -> None:
    first = await taken_from(connections)
    connections.release(first)
    assert await connections.acquire() == (first, True)
    assert (await connections.acquire())[1] is False
    assert len(dial.made) == 2


async def test_one_that_the_other_side_has_closed_is_not(connections: ConnectionPool, dial: Dialer) -> None:
    first = await taken_from(connections)
    connections.release(first)
    dial.made[0].is_idle = False
    assert (await connections.acquire())[0] is not first
    assert dial.made[0].closed == 1


async def test_not_too_many_are_kept(connections: ConnectionPool, dial: Dialer) -> None:
    taken = [await taken_from(connections) for _ in range(connection_pool.MOST_IDLE + 2)]
    for each in taken:
        connections.release(each)
    assert [each.closed for each in dial.made] == [0] * connection_pool.MOST_IDLE + [1, 1]


async def test_those_that_nobody_uses_are_closed(
    connections: ConnectionPool, dial: Dialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.0)
    connections.release(await taken_from(connections))
    async with asyncio.timeout(10):
        await dial.made[0].is_closed.wait()


async def test_none_is_kept_after_the_end(connections: ConnectionPool, dial: Dialer) -> None:
    taken: list[Any] = [(await connections.acquire())[0] for _ in range(2)]
    connections.release(taken[0])
    connections.close()
    connections.release(taken[1])
    assert [each.closed for each in dial.made] == [1, 1]
