"""Controller manager: runs controllers side by side, as kube-controller-manager does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.informer import Informers
from steersman.controllers.controller import Controller, ControllerDependencies, Settings
from steersman.controllers.monitors import Monitors
from steersman.work.work_queue import WorkQueues

logger = logging.getLogger(__name__)


class ControllerManager:
    """Runs controllers: `await start()`, then `await stop()`.

    `client_of` returns the client of a service account of kube-system. `shared` is the client of the informers; it may
    read all objects and write events.
    """

    def __init__(
        self,
        shared: Client,
        client_of: Callable[[str], Client],
        settings: Settings,
        controllers: Sequence[type[Controller[Any]]],
    ) -> None:
        self._shared = shared
        self._client_of = client_of
        self._settings = settings
        self._types = controllers
        self.informers = Informers(shared)
        self.monitors = Monitors(shared, self.informers)
        self.events = Broadcaster(shared)
        self.controllers: list[Controller[Any]] = []
        self._queues = WorkQueues(())
        self._synced = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the informers and the controllers. Controllers reconcile once all informers have synced."""
        for each in self._types:
            if not each.can_run(self._settings):
                logger.info("%s does not run: settings that it needs are missing", each.name)
                continue
            client = self._client_of(each.account) if each.account else self._shared
            recorder = self.events.recorder(each.component or each.account or each.name)
            dependencies = ControllerDependencies(client, self.informers, self.monitors, recorder, self._settings)
            self.controllers.append(each(dependencies))
        self._queues = WorkQueues(each.queue for each in self.controllers)
        self.events.start()
        self.informers.start()
        self._task = asyncio.create_task(self._run(), name="controllers")

    @property
    def idle(self) -> bool:
        """Return True if no key and no event waits now. Delayed keys do not count."""
        return self._synced and self._queues.idle and self.events.idle

    async def stop(self) -> None:
        """Stop the controllers, informers and the event writer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.monitors.stop()
        await self.informers.stop()
        await self.events.stop()

    async def _run(self) -> None:
        await self.informers.wait_until_synced()
        self._synced = True
        async with asyncio.TaskGroup() as group:
            for each in self.controllers:
                group.create_task(each.run(), name=each.name)
