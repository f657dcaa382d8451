"""Adoption of nodes that are created through the API: they are simulated until they are deleted or no longer ask for
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from steersman.api.core.v1 import Node
from steersman.client.errors import is_conflict, is_not_found
from steersman.client.informer import Informer
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.nodes.heartbeats import Heartbeats
from steersman.nodes.node_set import NodeSet
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import SimulatedNode
from steersman.work.work_queue import WorkQueue

logger = logging.getLogger(__name__)

_WORKERS: Final = 4


class Adoption:
    """Controller that adopts nodes: `start`, then `await stop()`.

    `adopted` is called with an adopted node and its object, once its heartbeats have begun.
    """

    def __init__(
        self,
        nodes: NodeSet,
        servers: NodeServers,
        heartbeats: Heartbeats,
        objects: Informer[Node],
        adopted: Callable[[SimulatedNode, Node], None],
    ) -> None:
        self._nodes = nodes
        self._servers = servers
        self._heartbeats = heartbeats
        self._objects = objects
        self._adopted = adopted
        self._queue: WorkQueue[str] = WorkQueue(base_delay=0.1, max_delay=60)

    def start(self) -> None:
        """Start to adopt existing, new and changed Node objects."""
        self._objects.on_change(self._changed)
        self._queue.start(self._sync, _failed, name="adoption of nodes", workers=_WORKERS)

    async def stop(self) -> None:
        """Stop, and remove all adopted nodes."""
        await self._queue.stop()
        for name in list(self._nodes):
            self._leave(name)

    @property
    def idle(self) -> bool:
        """True if no node is about to be adopted."""
        return self._queue.idle

    def _changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None:
            return
        name = node.metadata.name
        known = self._nodes.get(name)
        if known is not None and self._nodes.is_adopted(name):
            if new is None or new.metadata.uid != known.uid or not self._nodes.is_to_join(new):
                self._leave(name)
            else:
                self._nodes.follow(new)
                return
        if new is not None and self._nodes.is_to_join(new):
            self._queue.add(name)

    def _leave(self, name: str) -> None:
        if (found := self._nodes.leave(name)) is not None:
            self._servers.remove(found)
            self._heartbeats.forget(name)

    async def _sync(self, name: str) -> None:
        """Adopt the node of this name if it asks for it. Raises StatusError, Unreachable."""
        found = self._objects.get("", name)
        if found is None or name in self._nodes or not self._nodes.is_to_join(found):
            return
        try:
            node = self._nodes.join(found)
        except ValueError as error:
            logger.warning("node %s cannot be simulated: %s", name, error)
            return
        self._servers.add(node)
        try:
            await self._heartbeats.join(node, found)
        except BaseException:
            if self._nodes.get(name) is node:
                self._leave(name)
            raise
        if self._nodes.get(name) is node:
            self._adopted(node, found)


def _failed(name: str, error: Exception) -> None:
    if not isinstance(error, (StatusError, Unreachable)):
        logger.error("node %s", name, exc_info=error)
    elif not (isinstance(error, StatusError) and (is_conflict(error) or is_not_found(error))):
        logger.warning("node %s: %s", name, error)
