"""What is said of events that could not be recorded (k8s.io/apiserver `audit.HandlePluginError`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from steersman.audit.legacy import event_line
from steersman.audit.metrics import AuditMetrics

logger = logging.getLogger(__name__)

_MOST_TOLD: Final = 100
_MOST_READ: Final = 256 * 1024
"""Bytes of events that are read for one message: this is done on the loop."""


class Errors:
    """Counts and logs the events that one plugin has lost."""

    def __init__(self, metrics: AuditMetrics) -> None:
        self._metrics: Final = metrics

    def lost(self, plugin: str, why: object, records: Sequence[bytes]) -> None:
        """Tells of events that `plugin` could not record: in one line each, without what they hold, and without the
        query of the request, in which some clients put a token."""
        self._metrics.errors.inc((plugin,), len(records))
        told = records[: _as_many_as_are_read(records)]
        lines = [event_line(each, with_query=False) for each in told]
        if len(records) > len(told):
            lines.append(f"... and {len(records) - len(told)} more")
        logger.error(
            "Error in audit plugin '%s' affecting %d audit events: %s\nImpacted events:\n%s",
            plugin,
            len(records),
            why,
            "\n".join(lines),
        )


def _as_many_as_are_read(records: Sequence[bytes]) -> int:
    """How many of the records are told of by a line of their own."""
    size = 0
    for number, record in enumerate(records[:_MOST_TOLD]):
        size += len(record)
        if size > _MOST_READ:
            return number
    return min(len(records), _MOST_TOLD)
