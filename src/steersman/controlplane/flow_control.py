"""Priority and fairness of a control plane, configured by the stored flow schemas and priority levels.

Corresponds to upstream's config consumer: a change takes effect within an iteration or two of the event loop, and each
schema's status says whether its priority level exists.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from typing import Any, Final

from steersman.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.periodic import periodic
from steersman.controlplane.stores import Stores
from steersman.flowcontrol.estimates import Stored
from steersman.flowcontrol.fairness import Fairness, Finding, Schema
from steersman.flowcontrol.matching import Matcher
from steersman.flowcontrol.metrics import register_metrics
from steersman.machinery.errors.status import StatusError
from steersman.machinery.metrics import Registry
from steersman.machinery.values import times
from steersman.rest.context import loopback
from steersman.server.fairness_paths import install_fairness_paths
from steersman.server.server import Server
from steersman.store.follower import Follower
from steersman.work.offloading import offload_if
from steersman.work.work_queue import WorkQueue

logger = logging.getLogger(__name__)

GROUP: Final = "flowcontrol.apiserver.k8s.io"
SCHEMAS: Final = "flowschemas"
LEVELS: Final = "prioritylevelconfigurations"
MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"
ADJUSTMENT: Final = 10.0
"""Seconds between two adjustments of borrowed seats."""
_MINUTE: Final = 60.0
_MOST_UPDATES: Final = 6
"""Status updates of one schema per minute: servers that disagree must not fight over it."""
_FIRST: Final = 0.2
_LONGEST: Final = 8 * 3600.0
_CONFIGURATION: Final = "configuration"


class FlowControl:
    """A `Fairness` that follows the stored configuration from the start hook to `stop`."""

    def __init__(self, options: Options, stores: Stores, registry: Registry) -> None:
        """Raises OptionsError if there are no seats."""
        reading, writing = options.max_requests_inflight, options.max_mutating_requests_inflight
        if reading + writing <= 0:
            raise OptionsError(
                f"invalid configuration: MaxRequestsInFlight={reading} and MaxMutatingRequestsInFlight={writing}; "
                "they must add up to something positive"
            )
        loop = asyncio.get_running_loop()
        self.fairness: Final = Fairness(
            reading + writing,
            clock=times.monotonic,
            wall_clock=times.unix_now,
            later=lambda seconds, work: loop.call_later(seconds, work),
        )
        self._stores: Final = stores
        self._queue: Final[WorkQueue[str]] = WorkQueue(base_delay=_FIRST, max_delay=_LONGEST)
        self._sharing: Final = periodic("priority and fairness: sharing of seats", self._share_out, ADJUSTMENT)
        self._compiled: dict[str, tuple[str, Matcher]] = {}
        self._updates: dict[str, deque[float]] = {}
        self.fairness.reload = self._changed
        register_metrics(registry, self.fairness)

    def install(self, server: Server) -> None:
        """Add the hooks and the debugging endpoints."""
        server.add_post_start_hook("priority-and-fairness-config-consumer", self._start)
        server.add_post_start_hook("priority-and-fairness-filter", _nothing_to_start)
        install_fairness_paths(server, self.fairness)

    def stored(self, group: str, plural: str) -> Stored | None:
        """Return the number and average size of a resource's objects; None for resources of other servers."""
        try:
            cacher = self._stores.store(group, plural).cacher
        except KeyError:
            return None
        if not cacher.ready:
            return None
        count = cacher.count(cacher.prefix)
        return Stored(count, cacher.size / count if count else 0.0)

    async def stop(self) -> None:
        """Stop following the configuration."""
        await self._sharing.stop()
        await self._queue.stop()

    async def _start(self) -> None:
        for plural in (LEVELS, SCHEMAS):
            Follower(self._stores.store(GROUP, plural), lambda *_: self._changed()).begin()
        await self._apply_configuration()

    async def begin(self) -> None:
        """Write the statuses of the initial schemas, and write further ones on changes from now on.

        Waiting for the first statuses avoids writes behind the back of a user who has just started a server.
        """
        try:
            await self._sync(_CONFIGURATION)
        except StatusError as error:
            logger.error("writing the status of flow schemas failed and will be retried: %s", error.message)
        self._queue.start(self._sync, name="priority and fairness", workers=1)
        self._sharing.start()

    def _changed(self) -> None:
        self._queue.add(_CONFIGURATION)

    async def _share_out(self) -> None:
        self.fairness.share_out()

    async def _apply_configuration(self) -> list[Finding]:
        levels: list[PriorityLevelConfiguration] = [
            level async for level, _ in self._stores.objects(GROUP, LEVELS).iterate_cached()
        ]
        schemas: list[Schema] = []
        compiled: dict[str, tuple[str, Matcher]] = {}
        async for each, large in self._stores.objects(GROUP, SCHEMAS).iterate_cached():
            schema: FlowSchema = each
            uid_and_generation = f"{schema.metadata.uid} {schema.metadata.generation}"
            version, matcher = self._compiled.get(schema.metadata.name, ("", None))
            if matcher is None or version != uid_and_generation:
                matcher = await offload_if(large, Matcher, schema.spec)
            compiled[schema.metadata.name] = uid_and_generation, matcher
            schemas.append(Schema(schema, matcher))
        self._compiled = compiled
        return self.fairness.digest(levels, schemas)

    async def _sync(self, _: str) -> float | None:
        """Apply the configuration and write due statuses; return the seconds until the next attempt, None for none."""
        findings = await self._apply_configuration()
        now = times.monotonic()
        self._forget_updates_before(now - _MINUTE)
        due = [each for each in findings if self._may_update(each.schema, now)]
        results = await asyncio.gather(*(self._report(each) for each in due), return_exceptions=True)
        for error in results:
            if error is not None:
                raise error
        return random.uniform(30.0, 75.0) if len(due) < len(findings) else None

    def _forget_updates_before(self, moment: float) -> None:
        for name, moments in list(self._updates.items()):
            while moments and moments[0] < moment:
                moments.popleft()
            if not moments:
                del self._updates[name]

    def _may_update(self, schema: str, now: float) -> bool:
        moments = self._updates.setdefault(schema, deque())
        if len(moments) >= _MOST_UPDATES:
            return False
        moments.append(now)
        return True

    async def _report(self, finding: Finding) -> None:
        condition = finding.condition
        said: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "lastTransitionTime": times.now(),
            "reason": condition.reason,
            "message": condition.message,
        }
        applied = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "FlowSchema",
            "metadata": {"name": finding.schema},
            "status": {"conditions": [said]},
        }
        objects = self._stores.objects(GROUP, SCHEMAS)
        try:
            await objects.apply(loopback(name=finding.schema), finding.schema, applied, MANAGER, subresource="status")
        except StatusError as error:
            if error.code != 404:  # it was deleted meanwhile
                raise


async def _nothing_to_start() -> None:
    """Do nothing: the filter itself keeps the watermarks of requests."""
