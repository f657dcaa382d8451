"""Requests that servers behind the API server answer: one that is silent must not keep all workers waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from steersman.client.api_resource import APIResource
from steersman.client.informer import Informers
from steersman.client.resources import API_SERVICES
from steersman.machinery.errors.status import StatusError
from steersman.work.bounded_cache import BoundedCache

_LATE: Final = 1.0
"""Seconds after which an answer is late."""
_LONGEST: Final = 65.0
"""Seconds that an answer is waited for: somewhat more than API servers wait for it."""
_MOST_SLOW: Final = 10_000
"""Namespaces that are known to be slow; beyond that all are to show it again."""


class KeepsWaiting(StatusError):
    """A server does not answer, and as many wait for it as may: whoever else wants something is to come again."""

    def __init__(self, api_version: str) -> None:
        super().__init__(504, "Timeout", f"{api_version} does not answer, and others wait for it")


class OtherServers:
    """Which group versions other servers answer: those whose APIServices name a Service."""

    def __init__(self, informers: Informers) -> None:
        self._services = informers.of(API_SERVICES)

    def answer(self, resource: APIResource[Any]) -> bool:
        """Whether one of them answers requests for a resource."""
        service = self._services.get("", f"{resource.version}.{resource.group}")
        return service is not None and service.spec.service is not None


class Patience:
    """How the workers of a controller wait for other servers.

    For every namespace it may be waited until an answer is late. From then on it is slow, until it is answered in time,
    and no more than `most` wait for all slow ones.
    """

    def __init__(self, others: OtherServers, most: int) -> None:
        self._others = others
        self._most = most
        self._slow: BoundedCache[tuple[str, str], bool] = BoundedCache(_MOST_SLOW)
        """Group versions and namespaces."""
        self._waiting = 0
        """For slow ones."""

    @asynccontextmanager
    async def of(self, resource: APIResource[Any], namespace: str) -> AsyncIterator[None]:
        """Around a request. Raises KeepsWaiting, at once or when the answer is late; StatusError 504."""
        if not self._others.answer(resource):
            yield
            return
        api_version = resource.api_version
        about = api_version, namespace
        counts = bool(self._slow[about])
        if counts:
            self._enter(api_version)
        loop = asyncio.get_running_loop()

        def late() -> None:
            nonlocal counts
            self._remember(about)
            counts = self._waiting < self._most
            self._waiting += counts
            patience.reschedule(loop.time() + (_LONGEST - _LATE if counts else 0))

        try:
            async with asyncio.timeout(_LONGEST if counts else None) as patience:
                timer = None if counts else loop.call_later(_LATE, late)
                began = loop.time()
                try:
                    yield
                finally:
                    if timer is not None:
                        timer.cancel()
                    if loop.time() - began < _LATE and self._slow[about]:
                        self._slow.keep(about, False)
        except TimeoutError:
            if counts:
                raise StatusError(504, "Timeout", f"{api_version} did not answer in time") from None
            raise KeepsWaiting(api_version) from None
        finally:
            self._waiting -= counts

    def _enter(self, api_version: str) -> None:
        if self._waiting >= self._most:
            raise KeepsWaiting(api_version)
        self._waiting += 1

    def _remember(self, about: tuple[str, str]) -> None:
        self._slow.keep(about, True)
