"""What is said of events that could not be recorded (k8s.io/apiserver `audit.HandlePluginError`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from steersman.audit.legacy import event_line
from steersman.audit.metrics import AuditMetrics

logger = logging.getLogger(__name__)

_MOST_TOLD: Final = 100


class Errors:
    """Counts and logs the events that one plugin has lost."""

    def __init__(self, metrics: AuditMetrics) -> None:
        self._metrics: Final = metrics

    def lost(self, plugin: str, why: object, records: Sequence[bytes]) -> None:
        """Tells of events that `plugin` could not record: in one line each, without what they hold."""
        self._metrics.errors.inc((plugin,), len(records))
        lines = [event_line(each) for each in records[:_MOST_TOLD]]
        if len(records) > _MOST_TOLD:
            lines.append(f"... and {len(records) - _MOST_TOLD} more")
        logger.error(
            "Error in audit plugin '%s' affecting %d audit events: %s\nImpacted events:\n%s",
            plugin, len(records), why, "\n".join(lines),
        )  # fmt: skip
