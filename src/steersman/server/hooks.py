"""Named hooks that run at start and before shutdown; readyz shows start hooks as `poststarthook/NAME`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from steersman.machinery.errors.status import StatusError
from steersman.server.health import HealthCheck

logger = logging.getLogger(__name__)

Hook = Callable[[], Awaitable[None]]


class Hooks:
    """The hooks of a server. A hook that fails at start ends the server."""

    def __init__(self) -> None:
        self._post_start: dict[str, Hook] = {}
        self._pre_shutdown: dict[str, Hook] = {}
        self._finished: set[str] = set()

    def add_post_start(self, name: str, hook: Hook) -> HealthCheck:
        """Add a start hook; return the health check that passes once the hook has run. Raises ValueError for a taken
        name.
        """
        if name in self._post_start:
            raise ValueError(f"post-start hook {name} exists already")
        self._post_start[name] = hook
        return HealthCheck(f"poststarthook/{name}", lambda: None if name in self._finished else "not finished")

    def add_pre_shutdown(self, name: str, hook: Hook) -> None:
        """Add a shutdown hook, which runs before requests are drained. Raises ValueError for a taken name."""
        if name in self._pre_shutdown:
            raise ValueError(f"pre-shutdown hook {name} exists already")
        self._pre_shutdown[name] = hook

    async def run_post_start(self) -> None:
        """Run every start hook concurrently. Raises the error of the first failing one."""

        async def one(name: str, hook: Hook) -> None:
            await hook()
            self._finished.add(name)

        async with asyncio.TaskGroup() as group:
            for name, hook in self._post_start.items():
                group.create_task(one(name, hook), name=f"post-start {name}")

    def forget_pre_shutdown(self) -> None:
        """Remove the shutdown hooks, as another process continues this server's work."""
        self._pre_shutdown.clear()

    async def run_pre_shutdown(self) -> None:
        """Run every shutdown hook; a failure is logged and does not affect the others."""
        for name, hook in self._pre_shutdown.items():
            try:
                await hook()
            except StatusError as error:  # of unavailable storage
                logger.error("pre-shutdown hook %s failed: %s", name, error)
            except Exception:
                logger.exception("pre-shutdown hook %s failed", name)
