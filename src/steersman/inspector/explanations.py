"""Explanations and plans for the page, from what the API server shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from steersman.client.client import Client
from steersman.inspector.guard import Refused
from steersman.machinery.errors.status import StatusError
from steersman.work.bounded_cache import BoundedCache
from steersman.work.offloading import offload_if
from steersman.work.single_flight import SingleFlight

if TYPE_CHECKING:
    from steersman.explain.world import World

MOST_MANIFESTS: Final = 3 << 20
"""Longest manifests in bytes."""
_LARGE: Final = 16 << 10
"""Manifests of more bytes are read in a worker thread."""
_SHARE: Final = 0.01
"""Largest share of the time in which overviews are computed, as each reads all pods."""
_MOST_OVERVIEWS: Final = 16
"""Most namespaces whose overviews are kept."""
_CONCURRENT: Final = 2
"""Explanations and plans that are computed at the same time."""


class _Kept(NamedTuple):
    """An overview, and the time in seconds until which it is given again."""

    body: bytes
    until: float


class Explanations:
    """Answers of one cluster, as JSON."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        """Store the client; `clock` returns seconds."""
        self._client = client
        self._clock = clock
        self._permits = asyncio.Semaphore(_CONCURRENT)
        self._flights: SingleFlight[str, bytes] = SingleFlight()
        self._overviews: BoundedCache[str, _Kept] = BoundedCache(_MOST_OVERVIEWS)

    async def overview(self, namespace: str = "") -> bytes:
        """Return the unhealthy objects of a namespace, or of the cluster (`explain.overview.Overview`).

        The last answer is given again until 100 times as long has passed as it took. Raises Refused, and Unreachable.
        """
        kept = self._overviews[namespace]
        if kept is not None and self._clock() < kept.until:
            return kept.body
        return await self._flights.do(namespace, partial(self._new_overview, namespace))

    async def _new_overview(self, namespace: str) -> bytes:
        from steersman.explain.overview import overview

        began = self._clock()
        async with self._permits:
            found = await _answered(overview(self._world(), namespace))
        ended = self._clock()
        kept = _Kept(msgspec.json.encode(found), ended + (ended - began) / _SHARE)
        self._overviews.keep(namespace, kept)
        return kept.body

    async def explanation(self, kind: str, namespace: str, name: str) -> bytes:
        """Return the explanation of an object (`explain.finding.Explanation`). Raises Refused, and Unreachable."""
        from steersman.explain.explainers import explain
        from steersman.explain.kind_names import find_resource

        world = self._world()

        async def explained() -> Any:
            resource = find_resource(kind, (await world.resources()).served).resource
            return await explain(world, resource, name, namespace)

        async with self._permits:
            return msgspec.json.encode(await _answered(explained()))

    async def plan(self, manifests: bytes, namespace: str) -> bytes:
        """Return the plan of manifests (`explain.what_if.plan.Plan`). Raises Refused, and Unreachable."""
        from steersman.dumps.errors import DumpError
        from steersman.explain.dump import read_manifests
        from steersman.explain.what_if.plan import plan
        from steersman.explain.what_if.pods import TooManyPods

        try:
            async with self._permits:
                wanted = await offload_if(len(manifests) > _LARGE, read_manifests, manifests)
                return msgspec.json.encode(await _answered(plan(self._world(), wanted, namespace)))
        except (DumpError, TooManyPods) as error:
            raise Refused(400, str(error)) from None

    def _world(self) -> World:
        from steersman.explain.world import LiveWorld

        return LiveWorld(self._client)


async def _answered(work: Any) -> Any:
    """Return the result of `work`. Raises Refused with the code and the words of what is wrong."""
    from steersman.explain.explainers import NotFound
    from steersman.explain.kind_names import UnknownKind
    from steersman.explain.world import Unreadable

    try:
        return await work
    except (NotFound, UnknownKind) as error:
        raise Refused(404, str(error.args[0])) from None
    except Unreadable as error:
        raise Refused(403, str(error)) from None
    except StatusError as error:
        raise Refused(error.code, str(error)) from None
