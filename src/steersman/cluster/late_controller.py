"""Base of the controllers of a cluster's own kinds."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from steersman.client.api_resource import APIResource
from steersman.client.informer import Informer
from steersman.client.plain_object import PlainObject
from steersman.controllers.controller import Controller, ControllerDependencies

K = TypeVar("K")
O = TypeVar("O", bound=PlainObject)  # noqa: E741


class LateController(Controller[K]):
    """Controller that begins once its objects are known: others do not wait for objects that anybody may write."""

    account = ""

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._followed: Informer[Any] | None = None
        self._running: asyncio.Task[None] | None = None

    def follow(self, resource: APIResource[O]) -> Informer[O]:
        """Return the informer of the controller's own objects."""
        self._followed = informer = self.informers.for_resource(resource)
        return informer

    def start(self) -> None:
        """Start to reconcile, once the objects are known."""
        self._running = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Stop to reconcile."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    @property
    def idle(self) -> bool:
        """True if the objects are known and none is reconciled now."""
        return self._followed is not None and self._followed.has_synced and self.queue.idle

    async def _run(self) -> None:
        assert self._followed is not None
        await self._followed.wait_until_synced()
        await self.run()
