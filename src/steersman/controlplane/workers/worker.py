"""A worker: a process of a server that answers requests on connections passed to it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steersman.controlplane.addresses import Address
from steersman.controlplane.data_folder import open_storage
from steersman.controlplane.options import Options
from steersman.controlplane.workers import messages
from steersman.controlplane.workers.messages import Kind, WorkerSettings
from steersman.controlplane.workers.sums import summed
from steersman.endpoints.filters.consistency import ConsistencyWait
from steersman.machinery.shared_words import SharedWords
from steersman.net.link import Link, frame
from steersman.server.health import HealthCheck
from steersman.server.server import PARTING, Server
from steersman.storage.interface import Storage
from steersman.storage.shared.client import SharedStorage
from steersman.work.yielding import time_sliced

if TYPE_CHECKING:
    from steersman.controlplane.etcd_cluster import EtcdClusters
    from steersman.net.server import HttpServer

logger = logging.getLogger(__name__)

_COUNTING: Final = 0.25
"""Seconds between two reports of the number of connections to the owner."""
_AT_ONCE: Final = 16
"""Connections taken in one iteration of the event loop."""
_GATHERING: Final = 5.0
"""Seconds allowed for the metrics of the other workers."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets with which a worker was started; `storage` is None if each worker opens its own."""

    link: socket.socket
    connections: socket.socket
    storage: socket.socket | None
    words: SharedWords


class Worker:
    """The role of this process in a server of several processes. `given` is the owner's first message.

    The process exits at once when its owner is gone, as nobody could vouch for the state of the storage any more.
    """

    def __init__(self, given: WorkerSettings, sockets: Sockets) -> None:
        self.settings = given
        self.is_replaced = False
        """True if another worker has replaced this one, which is stopping."""
        self.ended = asyncio.Event()
        """Set when the owner tells this worker to stop."""
        self._sockets = sockets
        self._words = sockets.words
        self._link: Link | None = None
        self._server: Server | None = None
        self._connections_received = 0
        self._counting: asyncio.TimerHandle | None = None
        self._last = 0
        self._gathering: dict[int, asyncio.Future[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Connect to the owner. Raises OSError."""
        self._link = await Link.on(self._sockets.link, self._received, _owner_has_ended)

    # Interface for the control plane

    @property
    def is_first(self) -> bool:
        """True if this worker does the work that only one process of a server may do."""
        return self.settings.number == 0

    @property
    def lock(self) -> int:
        """The descriptor of a file that all workers share, for locks on byte ranges."""
        return self._words.descriptor

    async def open_storage(self, options: Options, clusters: EtcdClusters | None) -> Storage:
        """Return the storage of the whole server. Raises the storage's errors."""
        if self._sockets.storage is None:
            return await open_storage(options, clusters)
        return await SharedStorage.open(self._sockets.storage, self._words, _owner_has_ended)

    def install(self, server: Server, storage: Storage, behind: Callable[[int], Awaitable[None] | None]) -> None:
        """Connect the server with the other workers: metrics, health, and waits for their writes. Call it before
        prepare_run.
        """
        self._server = server
        server.gather = self._gather
        server.parting = PARTING
        server.add_checks(HealthCheck("workers", self._unready), only_ready=True)
        if isinstance(storage, SharedStorage):
            server.consistency_wait = ConsistencyWait(storage.wait_for_newest, behind, costs=False)

    def _unready(self) -> str | None:
        return None if self._words[messages.ALL_WERE_READY] else "not all workers have been ready yet"

    def listen(self, server: Server) -> None:
        """Take the connections that the owner passes."""
        http = server.begin(self.settings.port)
        connections = self._sockets.connections
        connections.setblocking(False)
        asyncio.get_running_loop().add_reader(connections, self._receive_connections, http)
        self._count(http)

    def _receive_connections(self, http: HttpServer) -> None:
        for _ in range(_AT_ONCE):
            try:
                data, descriptors, _, _ = socket.recv_fds(self._sockets.connections, 1, 1)
            except BlockingIOError:
                return
            if not data:
                asyncio.get_running_loop().remove_reader(self._sockets.connections)
                return
            self._connections_received += (
                1  # counts also a connection that was lost because this process has no file descriptors left
            )
            for each in descriptors:
                http.serve_socket(socket.socket(fileno=each))
            self._publish_counts(http)

    def _count(self, http: HttpServer) -> None:
        self._publish_counts(http)
        self._words[messages.beat_word(self.settings.slot)] += 1
        self._counting = asyncio.get_running_loop().call_later(_COUNTING, self._count, http)

    def _publish_counts(self, http: HttpServer) -> None:
        slot = self.settings.slot
        self._words[messages.open_word(slot)] = http.connections
        self._words[messages.passed_word(slot)] = self._connections_received

    # Metrics

    async def _gather(self, own: list[bytes]) -> list[bytes]:
        """Return the metrics of all workers; `own` are those of this worker."""
        assert self._link is not None
        self._last += 1
        number = self._last
        self._gathering[number] = answer = asyncio.get_running_loop().create_future()
        self._link.send(frame(Kind.GATHER, number))
        try:
            async with asyncio.timeout(_GATHERING):
                counted, *others = messages.parted(await answer)
        except TimeoutError:
            logger.warning("the metrics of the other workers did not arrive in time")
            return own
        finally:
            del self._gathering[number]
        texts = [b"".join(own), *others]
        return await summed([each.decode() for each in texts], counted.decode())

    async def _scrape(self, number: int) -> None:
        assert self._link is not None
        pieces: list[bytes] = []
        if self._server is not None:
            registry: Iterator[str] = self._server.config.registry.expose()
            async for text in time_sliced(registry):
                pieces.append(text.encode())
        self._link.send(frame(Kind.SCRAPED, number, *pieces))

    # Received frames

    def _received(self, kind: int, number: int, body: bytes) -> None:
        if kind == Kind.SCRAPE:
            task = asyncio.ensure_future(self._scrape(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif kind == Kind.GATHERED:
            answer = self._gathering.get(number)
            if answer is not None and not answer.done():
                answer.set_result(body)
        elif kind in (Kind.END, Kind.REPLACED):
            self.is_replaced = kind == Kind.REPLACED
            self.ended.set()

    def ready(self, where: Address) -> None:
        """Tell the owner that this worker accepts connections."""
        assert self._link is not None
        self._link.send(frame(Kind.READY, 0, messages.encode(where)))

    async def send_final_metrics(self) -> None:
        """Send the owner the final metrics."""
        assert self._link is not None
        if self._counting is not None:
            self._counting.cancel()
        await self._scrape(0)
        await self._link.drain()

    async def failed(self, why: str) -> None:
        """Tell the owner why this worker cannot start."""
        assert self._link is not None
        self._link.send(frame(Kind.FAILED, 0, why.encode()))
        await self._link.drain()


def _owner_has_ended() -> None:
    os._exit(1)
