"""Counting and logging of events that could not be recorded (k8s.io/apiserver `audit.HandlePluginError`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from steersman.audit.legacy import event_line
from steersman.audit.metrics import AuditMetrics

logger = logging.getLogger(__name__)

_MOST_TOLD: Final = 100
_MOST_READ: Final = 256 * 1024
"""Limit of the bytes of events that are decoded for one log message, as this happens on the event loop."""


class Errors:
    """Counts and logs events that audit plugins have lost."""

    def __init__(self, metrics: AuditMetrics) -> None:
        self._metrics: Final = metrics

    def lost(self, plugin: str, why: object, records: Sequence[bytes]) -> None:
        """Count and log events that `plugin` could not record, with one line per event.

        The lines contain neither objects nor the query of the request, since some clients put a token there.
        """
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
    """Return the number of records that get their own line."""
    size = 0
    for number, record in enumerate(records[:_MOST_TOLD]):
        size += len(record)
        if size > _MOST_READ:
            return number
    return min(len(records), _MOST_TOLD)
