"""Tests of the base class of controllers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from steersman.controllers.controller import Controller
from steersman.work.work_queue import TryLater


class Stubborn(Controller[str]):
    """A controller that acts at the end of each reconciliation, and fails."""

    name = "stubborn"
    account = ""

    def __init__(self) -> None:
        super().__init__(cast("Any", SimpleNamespace(client=None, informers=None, recorder=None)))
        self.begun = asyncio.Event()

    async def sync(self, key: str) -> None:
        try:
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            raise TryLater("the namespace is gone")


async def test_a_controller_ends_though_its_looks_end_with_errors() -> None:
    controller = Stubborn()
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await controller.begun.wait()
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=5)
    assert done
    assert running.cancelled()
