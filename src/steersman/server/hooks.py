"""Named pieces of work at start and before shutdown; those at start show in readyz as `poststarthook/NAME`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from steersman.machinery.errors.status import StatusError
from steersman.server.health import HealthCheck

logger = logging.getLogger(__name__)

Hook = Callable[[], Awaitable[None]]


class Hooks:
    """The hooks of a chain of servers. A hook that fails at start ends the server."""

    def __init__(self) -> None:
        self._post_start: dict[str, Hook] = {}
        self._pre_shutdown: dict[str, Hook] = {}
        self._done: set[str] = set()

    def add_post_start(self, name: str, hook: Hook) -> HealthCheck:
        """Adds work for the start; the health check that tells whether it is done. Raises ValueError."""
        if name in self._post_start:
            raise ValueError(f"post-start hook {name} is there already")
        self._post_start[name] = hook
        return HealthCheck(f"poststarthook/{name}", lambda: None if name in self._done else "not finished")

    def add_pre_shutdown(self, name: str, hook: Hook) -> None:
        """Adds work for the end, done before requests are drained. Raises ValueError."""
        if name in self._pre_shutdown:
            raise ValueError(f"pre-shutdown hook {name} is there already")
        self._pre_shutdown[name] = hook

    async def run_post_start(self) -> None:
        """Runs every start hook, all at the same time. Raises what the first failing one raises."""

        async def one(name: str, hook: Hook) -> None:
            await hook()
            self._done.add(name)

        async with asyncio.TaskGroup() as group:
            for name, hook in self._post_start.items():
                group.create_task(one(name, hook), name=f"post-start {name}")

    def forget_pre_shutdown(self) -> None:
        """Has nothing done at the end, as another process goes on with it."""
        self._pre_shutdown.clear()

    async def run_pre_shutdown(self) -> None:
        """Runs every shutdown hook; one that fails is logged and does not keep the others."""
        for name, hook in self._pre_shutdown.items():
            try:
                await hook()
            except StatusError as error:  # of a storage that is away
                logger.error("pre-shutdown hook %s failed: %s", name, error)
            except Exception:
                logger.exception("pre-shutdown hook %s failed", name)
