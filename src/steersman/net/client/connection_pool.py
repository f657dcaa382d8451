"""Connection pool of one server, as Go's transport keeps idle connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.net.client.answer import BadAnswer
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.upgrade import UpgradedConnection
from steersman.work.single_flight import SingleFlight

MOST_IDLE: Final = 25
IDLE_SECONDS: Final = 90.0

Connection = UpgradedConnection | Http2Connection


class ConnectionPool:
    """Pool of connections to one server; `dial` makes new ones. Connections that stay idle for long are closed.

    An HTTP/2 connection serves as many concurrent requests as it accepts. If HTTP/2 is offered (`multiplexes`), all
    callers share one dialling attempt until the other side turns out to speak only HTTP/1.1.
    """

    def __init__(self, dial: Callable[[], Awaitable[UpgradedConnection]], *, multiplexes: bool = False) -> None:
        self._dial = dial
        self._multiplexes = multiplexes
        self._idle: list[tuple[UpgradedConnection, float]] = []
        """Idle HTTP/1.1 connections, each with its time of return on the event loop's clock, the latest last."""
        self._with_room: dict[Http2Connection, None] = {}
        self._multiplexed: set[Http2Connection] = set()
        """All HTTP/2 connections that accept requests."""
        self._dialing: SingleFlight[str, None] = SingleFlight()
        self._waiting = 0
        """Number of requests that wait for the shared dialling attempt."""
        self._new: UpgradedConnection | None = None
        """A dialled HTTP/1.1 connection for the first waiting request."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def acquire(self) -> tuple[Connection, bool]:
        """Return a connection, and True if it has carried requests before: the other side may be about to close it.

        Raises the exceptions of `dial`, and BadAnswer.
        """
        while True:
            while self._with_room:
                shared = next(iter(self._with_room))
                if shared.has_capacity:
                    return shared, shared.next_id > 1
                del self._with_room[shared]
                if shared.accepts_nothing:  # it would be useless, and another one would be opened for each request
                    shared.shut_down()
                shared.filled()
            while self._idle:
                connection, _ = self._idle.pop()
                if connection.is_idle:
                    return connection, True
                connection.hang_up()
            if not self._multiplexes:
                connection = await self._dial()
                if not self._adopted(connection):
                    return connection, False
            elif (new := await self._shared_dial()) is not None:
                return new, False

    async def _shared_dial(self) -> UpgradedConnection | None:
        """Return a new HTTP/1.1 connection for this request alone, or None if the pool has to be searched again."""
        self._waiting += 1
        try:
            await self._dialing.do("dial", self._dial_for_all)
            new, self._new = self._new, None
            return new
        finally:
            self._waiting -= 1
            self._keep_new()

    async def _dial_for_all(self) -> None:
        connection = await self._dial()
        if not self._adopted(connection):
            self._multiplexes = False
            self._new = connection
        self._keep_new()

    def _keep_new(self) -> None:
        """Return the dialled connection to the pool if no request waits for it any more."""
        if self._new is not None and not self._waiting:
            new, self._new = self._new, None
            self.release(new)

    def _adopted(self, connection: UpgradedConnection) -> bool:
        """Return True if a new connection speaks HTTP/2; it is then shared. Raises BadAnswer if it has ended."""
        if connection.protocol != "h2":
            return False
        self._multiplexes = True
        try:
            shared = Http2Connection(connection, self._is_gone, self._has_room)
        except ConnectionResetError:
            raise BadAnswer("unexpected EOF") from None
        if shared.has_capacity:
            self._multiplexed.add(shared)
            self._with_room[shared] = None
        if self._is_closed:
            shared.shut_down()
        return True

    def _has_room(self, shared: Http2Connection) -> None:
        if shared in self._multiplexed:
            self._with_room[shared] = None

    def _is_gone(self, shared: Http2Connection) -> None:
        self._multiplexed.discard(shared)
        self._with_room.pop(shared, None)

    def release(self, connection: UpgradedConnection) -> None:
        """Keep a connection for the next request; close it if it cannot carry one or the pool is full."""
        if self._is_closed or len(self._idle) >= MOST_IDLE or not connection.is_idle:
            connection.hang_up()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((connection, loop.time()))
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close connections that have been idle for long."""
        self._timer = None
        loop = asyncio.get_running_loop()
        long_ago = loop.time() - IDLE_SECONDS
        while self._idle and (self._idle[0][1] <= long_ago or not self._idle[0][0].is_idle):
            self._idle.pop(0)[0].hang_up()
        if self._idle:
            self._timer = loop.call_at(self._idle[0][1] + IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Close idle connections, and the others as soon as they have no request."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection, _ in self._idle:
            connection.hang_up()
        self._idle.clear()
        for shared in list(self._multiplexed):
            shared.shut_down()
