"""Controller that keeps the ResourceSlices of simulated nodes published."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from steersman.api.core.v1 import Node
from steersman.api.resource.v1 import ResourceSlice
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists, is_conflict, is_not_found
from steersman.client.informer import Informers
from steersman.client.resources import NODES, RESOURCE_SLICES
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.nodes.devices.slices import SIMULATED, DeviceSets, changes
from steersman.work.work_queue import WorkQueue

logger = logging.getLogger(__name__)

_OF_NODE: Final = "simulated devices"
"""Index of the slices of simulated drivers by node."""
_WORKERS: Final = 4


class SlicePublisher:
    """Publisher of the slices of all simulated nodes: `start`, then `await stop()`.

    `is_simulated` returns True for the name of a simulated node.
    """

    def __init__(
        self, client: Client, informers: Informers, sets: DeviceSets, is_simulated: Callable[[str], bool]
    ) -> None:
        self._client = client
        self._sets = sets
        self._is_simulated = is_simulated
        self._nodes = informers.for_resource(NODES)
        self._slices = informers.for_resource(RESOURCE_SLICES)
        self._queue: WorkQueue[str] = WorkQueue(base_delay=0.1, max_delay=60)

    async def start(self) -> None:
        """Publish the slices of existing nodes, then follow them."""
        self._slices.add_index(_OF_NODE, _node_of)
        await self._slices.wait_until_synced()
        self._nodes.on_change(self._node_changed)
        self._slices.on_change(self._slice_changed)
        self._queue.start(self._sync, _failed, name="slices of simulated nodes", workers=_WORKERS)

    async def stop(self) -> None:
        """Stop. The slices stay."""
        await self._queue.stop()

    @property
    def idle(self) -> bool:
        """True if no slices are about to be published."""
        return self._queue.idle

    def add(self, name: str) -> None:
        """Publish the slices of a node that is simulated from now on."""
        self._queue.add(name)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (
            old is None or old.metadata.uid != new.metadata.uid or old.metadata.labels != new.metadata.labels
        ):
            self._queue.add(new.metadata.name)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for each in (old, new):
            for name in () if each is None else _node_of(each):
                self._queue.add(name)

    async def _sync(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None or not self._is_simulated(name):
            return  # the garbage collector deletes slices of a Node that is gone
        due = changes(self._sets.slices_of(node), self._slices.indexed(_OF_NODE, name))
        for each in due.deleted:
            with ignoring(is_not_found):
                await self._client.delete(RESOURCE_SLICES, each.metadata.name)
        for each in due.updated:
            await self._client.update(RESOURCE_SLICES, each)
        for each in due.created:
            with ignoring(is_already_exists):
                await self._client.create(RESOURCE_SLICES, each)


def _node_of(piece: ResourceSlice) -> Iterable[str]:
    name = piece.spec.node_name
    return (name,) if name and SIMULATED in piece.metadata.labels else ()


def _failed(name: str, error: Exception) -> None:
    if not isinstance(error, (StatusError, Unreachable)):
        logger.error("devices of node %s", name, exc_info=error)
    elif not (isinstance(error, StatusError) and is_conflict(error)):
        logger.warning("devices of node %s: %s", name, error)
