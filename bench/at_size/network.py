"""Network between the server and its etcd, which can be cut until etcd has compacted revisions that the server lacks."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine
from typing import Any

from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members, endpoints
from tools.chaos.proxy import Proxy


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Network:
    """A proxy in front of an etcd, in a thread."""

    def __init__(self, etcd: str) -> None:
        self._etcd = etcd
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._proxy = Proxy(int(etcd.rpartition(":")[2]))

    @property
    def url(self) -> str:
        """Return the URL of etcd for the server."""
        return f"http://127.0.0.1:{self._proxy.port}"

    def __enter__(self) -> Network:
        self._thread.start()
        self._do(self._proxy.start())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._proxy.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def lose(self) -> None:
        """Cuts all connections, has etcd compacted beyond what the server has seen, and lets it connect again."""
        self._do(self._lose())

    async def _lose(self) -> None:
        self._proxy.cut()
        members = Members(endpoints([self._etcd]), None)
        try:
            key = b"/registry/lost"
            for _ in range(3):
                await members.call(messages.PUT, messages.put(key, b"x"), repeatable=True)
            answer = await members.call(messages.DELETE_RANGE, messages.delete_range(key), repeatable=True)
            revision = messages.read_revision(answer)
            await members.call(messages.COMPACT, messages.compaction(revision), repeatable=True)
        finally:
            members.close()
            self._proxy.heal()
