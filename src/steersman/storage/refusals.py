"""An account of refused storage requests for the operator, while clients only learn of their own.

Whatever the reason (a full or failing disk; a file that is locked, read-only or damaged; an etcd without space or
leader), the log reports it now and then, a metric counts it, and `/readyz` fails until the storage works again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from steersman.machinery.values import times

logger = logging.getLogger(__name__)

_SAID_EVERY: Final = 60.0
"""Seconds between log lines about the same refusal."""
_STANDS: Final = 60.0
"""Seconds for which a refusal counts if no request came since."""
_LINGERS: Final = 30.0
"""Seconds for which a refusal counts if a request succeeded since: a full disk takes small writes and refuses large
ones.
"""


class Operation(StrEnum):
    """A kind of storage request."""

    READ = "read"
    WRITE = "write"


class Refusals:
    """The refusals of one operation of a storage. Used on the event loop."""

    def __init__(
        self, operation: Operation, *, logs: bool = True, clock: Callable[[], float] = times.monotonic
    ) -> None:
        """Take the operation. Without `logs` another process writes the log lines."""
        self.operation: Final = operation
        self.total = 0
        """The number of refused requests since the start."""
        self._logs = logs
        self._clock = clock
        self._why = ""
        self._at = 0.0
        self.ongoing = False
        """True if the last request was refused."""
        self._said_at = -_SAID_EVERY
        self._unsaid = 0
        self._was_said = False
        """True if the log reports a refusal whose end it does not report yet."""

    def wrong(self) -> str | None:
        """Return why requests are refused now, None if they are not."""
        if not self._why or self._clock() - self._at > (_STANDS if self.ongoing else _LINGERS):
            return None
        return f"storage refuses to {self.operation}: {self._why}"

    def refused(self, why: object, requests: int = 1) -> None:
        """Record refused requests; the reason is the state of the storage, not the request."""
        now = self._clock()
        self.total += requests
        self._unsaid += requests
        self._why, self._at, self.ongoing = str(why), now, True
        if self._logs and now - self._said_at >= _SAID_EVERY:
            logger.error(
                "storage refuses to %s: %s (%d requests since the last such line)", self.operation, why, self._unsaid
            )
            self._said_at, self._unsaid, self._was_said = now, 0, True

    def accepted(self) -> None:
        """Record a successful request, which ends the refusals."""
        if not self.ongoing:
            return
        self.ongoing = False
        if self._was_said:
            self._was_said = False
            logger.warning("storage no longer refuses to %s; it has refused %d requests", self.operation, self.total)


class Account:
    """The refusals of a storage, of reads and of writes."""

    def __init__(self, *, logs: bool = True) -> None:
        self.reads: Final = Refusals(Operation.READ, logs=logs)
        self.writes: Final = Refusals(Operation.WRITE, logs=logs)

    def wrong(self) -> str | None:
        """Return why requests are refused now, None if they are not."""
        return self.writes.wrong() or self.reads.wrong()
