"""Reports of the repair controllers of Services: Events and log lines."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import Final

from steersman.api.core.v1 import Event, ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.values import times
from steersman.registry.services import Services
from steersman.rest.context import loopback
from steersman.work.bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

_SUPPRESSED_SECONDS: Final = 360.0
"""Seconds within which an identical report is suppressed."""
_MAX_REMEMBERED: Final = 4096
"""The most reports that are remembered."""


class RepairEvents:
    """The reports of one controller. `clock` returns monotonic seconds."""

    def __init__(self, services: Services, controller: str, clock: Callable[[], float] = times.monotonic) -> None:
        self._objects = services.objects
        self._controller = controller
        self._clock = clock
        self._reported: BoundedCache[tuple[str, str], float] = BoundedCache(_MAX_REMEMBERED)

    async def report(self, regarding: ObjectReference, reason: str, action: str, note: str) -> None:
        """Create a Warning event about an object, and write a log line. Raises StatusError."""
        now = self._clock()
        last = self._reported[(regarding.uid, note)]
        if last is not None and now - last < _SUPPRESSED_SECONDS:
            return
        self._reported.keep((regarding.uid, note), now)
        logger.warning("%s", note)
        namespace = regarding.namespace or "default"
        event = Event(
            metadata=ObjectMeta(name=f"{regarding.name}.{time.time_ns():x}", namespace=namespace),
            event_time=times.now_micro(),
            reporting_component=self._controller,
            reporting_instance=f"{self._controller}-{socket.gethostname()}",
            action=action,
            reason=reason,
            involved_object=regarding,
            message=note,
            type="Warning",
        )
        await self._objects("", "events").create(loopback(namespace), event)


def reference_to(kind: str, api_version: str, metadata: ObjectMeta) -> ObjectReference:
    """Return a reference to an object of this kind."""
    return ObjectReference(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=api_version,
        resource_version=metadata.resource_version,
    )
