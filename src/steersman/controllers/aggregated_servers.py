"""Limits for requests to aggregated API servers: a silent server must not block all workers of a controller."""

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

_SLOW_AFTER: Final = 1.0
"""Seconds without a response after which a server counts as slow."""
_TIMEOUT: Final = 65.0
"""Seconds after which a request is given up: somewhat more than the API server's own timeout."""
_MAX_REMEMBERED: Final = 10_000
"""Most remembered pairs of a group version and a namespace; evicted pairs must prove slow again."""


class ServerNotResponding(StatusError):
    """A server does not respond, and no more requests may wait for it: the key is to be retried."""

    def __init__(self, api_version: str) -> None:
        super().__init__(504, "Timeout", f"{api_version} does not respond, and other requests wait for it already")


class AggregatedServers:
    """Group versions of aggregated API servers: APIServices that name a Service."""

    def __init__(self, informers: Informers) -> None:
        self._services = informers.for_resource(API_SERVICES)

    def serves(self, resource: APIResource[Any]) -> bool:
        """Return True if an aggregated server answers the requests for a resource."""
        service = self._services.get("", f"{resource.version}.{resource.group}")
        return service is not None and service.spec.service is not None


class AggregatedServerLimit:
    """Limits how many workers of a controller wait for slow aggregated servers.

    In each namespace a request may wait until it is late. The group version then counts as slow in this namespace until
    it responds in time. At most `most` requests to slow servers wait at the same time.
    """

    def __init__(self, others: AggregatedServers, most: int) -> None:
        self._others = others
        self._most = most
        self._slow: BoundedCache[tuple[str, str], bool] = BoundedCache(_MAX_REMEMBERED)
        """Slow pairs of group version and namespace."""
        self._waiting = 0
        """Number of requests that wait for slow servers."""

    @asynccontextmanager
    async def request(self, resource: APIResource[Any], namespace: str) -> AsyncIterator[None]:
        """Limit the time of one request. Raises ServerNotResponding if the limit is reached at the start or when the response
        is late.

        Raises StatusError 504 if the server does not respond at all.
        """
        if not self._others.serves(resource):
            yield
            return
        api_version = resource.api_version
        about = api_version, namespace
        counts = bool(self._slow[about])
        if counts:
            self._acquire(api_version)
        loop = asyncio.get_running_loop()

        def late() -> None:
            nonlocal counts
            self._mark_slow(about)
            counts = self._waiting < self._most
            self._waiting += counts
            patience.reschedule(loop.time() + (_TIMEOUT - _SLOW_AFTER if counts else 0))

        try:
            async with asyncio.timeout(_TIMEOUT if counts else None) as patience:
                timer = None if counts else loop.call_later(_SLOW_AFTER, late)
                began = loop.time()
                try:
                    yield
                finally:
                    if timer is not None:
                        timer.cancel()
                    if loop.time() - began < _SLOW_AFTER and self._slow[about]:
                        self._slow.keep(about, False)
        except TimeoutError:
            if counts:
                raise StatusError(504, "Timeout", f"{api_version} did not respond in time") from None
            raise ServerNotResponding(api_version) from None
        finally:
            self._waiting -= counts

    def _acquire(self, api_version: str) -> None:
        if self._waiting >= self._most:
            raise ServerNotResponding(api_version)
        self._waiting += 1

    def _mark_slow(self, about: tuple[str, str]) -> None:
        self._slow.keep(about, True)
