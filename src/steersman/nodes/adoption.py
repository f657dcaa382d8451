"""Adoption of nodes that are created through the API: they are simulated until they are deleted or no longer ask for
it.
"""

from __future__ import annotations

import logging
from typing import Final

from steersman.api.core.v1 import Node
from steersman.client.errors import is_conflict, is_not_found
from steersman.client.informer import Informer
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.nodes.heartbeats import Heartbeats
from steersman.nodes.node_set import NodeSet
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import SimulatedNode
from steersman.work.work_queue import WorkQueue

logger = logging.getLogger(__name__)

_WORKERS: Final = 16
_LONGEST_WAIT: Final = 86400.0
"""Seconds between two checks of a node that boots, as a timer cannot be set for any length of time."""


class NodeHooks:
    """Callbacks of `Adoption`."""

    def adopted(self, node: SimulatedNode, obj: Node) -> None:
        """Handle an adopted node, once its heartbeats have begun."""

    def booted(self, node: SimulatedNode) -> None:
        """Handle a node that has booted."""

    def left(self, node: SimulatedNode) -> None:
        """Handle a node that is no longer simulated."""

    def refused(self, obj: Node, why: str) -> None:
        """Handle a Node object that asks to be simulated and cannot be."""


class Adoption:
    """Controller that adopts nodes: `start`, then `await stop()`."""

    def __init__(
        self,
        nodes: NodeSet,
        servers: NodeServers,
        heartbeats: Heartbeats,
        objects: Informer[Node],
        hooks: NodeHooks,
    ) -> None:
        self._nodes = nodes
        self._servers = servers
        self._heartbeats = heartbeats
        self._objects = objects
        self._hooks = hooks
        self._queue: WorkQueue[str] = WorkQueue(base_delay=0.1, max_delay=60)
        self._without_room: dict[str, None] = {}
        """Names of nodes for which no address was free, in order."""

    async def start(self) -> None:
        """Adopt the existing Node objects, then start to adopt new and changed ones."""
        for node in self._objects:
            self._nodes.resume(node)
        self._objects.on_change(self._changed)
        self._queue.start(self._sync, _failed, name="adoption of nodes", workers=_WORKERS)
        await self._queue.wait_until_idle()

    async def stop(self) -> None:
        """Stop, and remove all nodes."""
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
        if known is not None:
            if new is None or new.metadata.uid != known.uid or not self._nodes.is_to_join(new):
                self._leave(name)
            else:
                self._nodes.follow(old, new)
                self._watch_boot(known)
                return
        if new is not None and self._nodes.is_to_join(new):
            self._queue.add(name)

    def _watch_boot(self, node: SimulatedNode) -> None:
        """Call the hook when the node has booted."""
        if node.boots:
            node.waits_for_boot = True
        if node.waits_for_boot:
            self._queue.add_after(node.name, _until_ready(node))

    def _leave(self, name: str) -> None:
        if (node := self._nodes.leave(name)) is None:
            return
        self._servers.remove(node)
        self._heartbeats.forget(name)
        self._hooks.left(node)
        if self._without_room:
            waiting = next(iter(self._without_room))
            del self._without_room[waiting]
            self._queue.add(waiting)

    async def _sync(self, name: str) -> float | None:
        """Adopt the node of this name if it asks for it, or end its boot. Return the seconds until its boot ends.

        Raises StatusError, Unreachable.
        """
        known = self._nodes.get(name)
        if known is not None:
            return self._end_boot(known)
        stored = self._objects.get("", name)
        self._without_room.pop(name, None)
        if stored is None or not self._nodes.is_to_join(stored):
            return None
        try:
            node = self._nodes.join(stored)
        except ValueError:
            self._without_room[name] = None
            self._hooks.refused(stored, f"{len(self._nodes)} nodes are simulated, and there are no addresses for more")
            return None
        self._servers.add(node)
        try:
            await self._heartbeats.join(node, stored)
        except BaseException:
            if self._nodes.get(name) is node:
                self._leave(name)
            raise
        if self._nodes.get(name) is node:
            self._hooks.adopted(node, stored)
            self._watch_boot(node)
        return None

    def _end_boot(self, node: SimulatedNode) -> float | None:
        if not node.waits_for_boot:
            return None
        if node.boots:
            return _until_ready(node)
        node.waits_for_boot = False
        self._hooks.booted(node)
        return None


def _until_ready(node: SimulatedNode) -> float:
    return min(max(node.ready_at - times.unix_now(), 0.0), _LONGEST_WAIT)


def _failed(name: str, error: Exception) -> None:
    if not isinstance(error, (StatusError, Unreachable)):
        logger.error("node %s", name, exc_info=error)
    elif not (isinstance(error, StatusError) and (is_conflict(error) or is_not_found(error))):
        logger.warning("node %s: %s", name, error)
