"""The owner process of a server: has the storage and the port, and keeps the workers running."""

from __future__ import annotations

import asyncio
import socket

from steersman.controlplane.addresses import Address, cannot_listen, check_port
from steersman.controlplane.data_folder import make_data_folder, open_own_storage
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.workers import messages
from steersman.controlplane.workers.pool import WorkerPool
from steersman.machinery.shared_words import SharedWords
from steersman.net.accept_loop import AcceptLoop
from steersman.net.server import listening_socket
from steersman.storage.interface import Storage
from steersman.storage.shared.server import StorageServer


class Owner:
    """Process that has the storage and the port, and starts and replaces workers.

    `start` raises the errors of a control plane; `stop` ends the workers, then the storage.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._words: SharedWords | None = None
        self._storage: Storage | None = None
        self._server: StorageServer | None = None
        self._accepting: AcceptLoop | None = None
        self._workers: WorkerPool | None = None

    # Start and end

    async def start(self) -> Address:
        """Start the first worker, which creates the initial objects, then the others.

        Raises OptionsError, OSError and the storage's errors; everything is stopped in that case.
        """
        try:
            return await self._start()
        except BaseException:
            if self._workers is not None:
                await self._workers.kill()
            await self._release()
            raise

    async def _start(self) -> Address:
        options = self.options
        if options.workers > messages.MOST_WORKERS:
            raise OptionsError(f"--workers: at most {messages.MOST_WORKERS}")
        check_port(options)
        make_data_folder(options)
        words = self._words = SharedWords.create()
        if not options.etcd_servers:
            storage = self._storage = await open_own_storage(options)
            self._server = StorageServer(storage, words)
            await self._server.start()
        try:
            listener = listening_socket(
                options.bind_address, options.secure_port, shares_port=options.permit_port_sharing
            )
            workers = self._workers = WorkerPool(options, int(listener.getsockname()[1]), words, self._server)
            self._accepting = AcceptLoop(asyncio.get_running_loop(), listener, self._hand_over)
            self._accepting.start()
        except OSError as error:
            raise cannot_listen(options, error) from None
        first = await workers.start(0)
        where = await first.ready()
        others = await asyncio.gather(*map(workers.start, range(1, options.workers)))
        await asyncio.gather(*(each.ready() for each in others))
        words[messages.ALL_WERE_READY] = 1
        workers.keep_running()
        return where

    async def stop(self) -> None:
        """Stop all workers gracefully, then the storage."""
        workers, delay = self._workers, self.options.shutdown_delay_duration
        if workers is not None:
            await workers.release()
            workers.begin_end()
        if delay:
            await asyncio.sleep(delay)
        self._stop_accepting()
        if workers is not None:
            await workers.wait_for_end(delay)
        await self._release()

    async def _release(self) -> None:
        self._stop_accepting()
        if self._server is not None:
            await self._server.stop()
        if self._storage is not None:
            await self._storage.close()
        if self._words is not None:
            self._words.close()

    def replace_workers(self) -> None:
        """Replace all workers by new processes, one at a time, each once its replacement is ready."""
        if self._workers is not None:
            self._workers.replace()

    # Connections

    def _hand_over(self, sock: socket.socket) -> None:
        """Pass a connection to a worker, or back to the accept loop if none takes it."""
        if self._workers is not None and self._workers.hand_over(sock):
            sock.close()
        else:
            assert self._accepting is not None  # the accept loop has passed the connection
            self._accepting.give_back(sock)

    def _stop_accepting(self) -> None:
        if self._accepting is not None:
            self._accepting.close()
            self._accepting = None
