"""Tells of what is wrong with the addresses and ports of Services: Events, and lines in the log."""

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

_QUIET: Final = 360.0
"""Seconds in which the same thing is told once."""
_TOLD: Final = 4096
"""Things that were told and are kept in mind."""


class RepairEvents:
    """Those of one controller. `clock` tells seconds that only grow."""

    def __init__(self, services: Services, controller: str, clock: Callable[[], float] = times.monotonic) -> None:
        self._objects = services.objects
        self._controller = controller
        self._clock = clock
        self._told: BoundedCache[tuple[str, str], float] = BoundedCache(_TOLD)

    async def tell(self, regarding: ObjectReference, reason: str, action: str, note: str) -> None:
        """Makes a Warning about an object, and a line in the log. Raises StatusError."""
        now = self._clock()
        told = self._told[(regarding.uid, note)]
        if told is not None and now - told < _QUIET:
            return
        self._told.keep((regarding.uid, note), now)
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
    """A reference to an object of this kind."""
    return ObjectReference(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=api_version,
        resource_version=metadata.resource_version,
    )
