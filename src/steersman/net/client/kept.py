"""Connections to one server that are kept for the next request, as Go's transport keeps them."""

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


class KeptConnections:
    """Gives connections, old ones first; `dial` makes new ones. Those that nobody has used for a while are closed.

    One of HTTP/2 is given to as many requests at once as it takes. Where HTTP/2 is offered (`multiplexes`) only one is
    made at a time, which the others wait for, until the other side turns out to speak HTTP/1.1 only.
    """

    def __init__(self, dial: Callable[[], Awaitable[UpgradedConnection]], *, multiplexes: bool = False) -> None:
        self._dial = dial
        self._multiplexes = multiplexes
        self._idle: list[tuple[UpgradedConnection, float]] = []
        """Each with the time of the loop when it was given back, the last one last."""
        self._with_room: dict[Http2Connection, None] = {}
        self._multiplexed: set[Http2Connection] = set()
        """All of HTTP/2 that take requests."""
        self._dialing: SingleFlight[str, None] = SingleFlight()
        self._waiting = 0
        """Requests that wait for what is being dialled."""
        self._new: UpgradedConnection | None = None
        """What has been dialled for the first of them."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it has carried requests before: the other side may be about to close it. Raises
        what `dial` raises, and BadAnswer."""
        while True:
            while self._with_room:
                shared = next(iter(self._with_room))
                if shared.can_take:
                    return shared, shared.next_id > 1
                del self._with_room[shared]
                if shared.takes_none:  # it would be of no use, and there would be one more for each request
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
        """A connection of HTTP/1.1 for this request alone; None if there is another way now."""
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
        """Nobody may wait any more for what has been dialled."""
        if self._new is not None and not self._waiting:
            new, self._new = self._new, None
            self.give_back(new)

    def _adopted(self, connection: UpgradedConnection) -> bool:
        """Whether a new connection is one of HTTP/2, which is shared then. Raises BadAnswer if it has ended."""
        if connection.protocol != "h2":
            return False
        self._multiplexes = True
        try:
            shared = Http2Connection(connection, self._is_gone, self._has_room)
        except ConnectionResetError:
            raise BadAnswer("unexpected EOF") from None
        if shared.can_take:
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

    def give_back(self, connection: UpgradedConnection) -> None:
        """Keeps a connection that can carry another request."""
        if self._is_closed or len(self._idle) >= MOST_IDLE or not connection.is_idle:
            connection.hang_up()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((connection, loop.time()))
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Closes what has been idle for long."""
        self._timer = None
        loop = asyncio.get_running_loop()
        long_ago = loop.time() - IDLE_SECONDS
        while self._idle and (self._idle[0][1] <= long_ago or not self._idle[0][0].is_idle):
            self._idle.pop(0)[0].hang_up()
        if self._idle:
            self._timer = loop.call_at(self._idle[0][1] + IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Closes those that are idle, and from now on every one that is given back or has nothing more to carry."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection, _ in self._idle:
            connection.hang_up()
        self._idle.clear()
        for shared in list(self._multiplexed):
            shared.shut_down()
