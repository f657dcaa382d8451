"""An account of the requests that a storage refuses, for its operator: clients are told each by itself.

A full or failing disk, a file that is locked, read-only or damaged, an etcd without space or without a leader: whatever
it is, the log says so now and then, a metric counts it, and `/readyz` fails until the storage does as it should.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from steersman.machinery.values import times

logger = logging.getLogger(__name__)

_SAID_EVERY: Final = 60.0
"""Seconds between lines of the log about the same."""
_STANDS: Final = 60.0
"""Seconds for which a refusal counts when nothing was asked since..."""
_LINGERS: Final = 30.0
"""...and when something was done since: a disk that is full takes small writes and refuses large ones."""


class Operation(StrEnum):
    """A kind of request to a storage."""

    READ = "read"
    WRITE = "write"


class Refusals:
    """The refusals of one storage and one operation. On the event loop."""

    def __init__(
        self, operation: Operation, *, logs: bool = True, clock: Callable[[], float] = times.monotonic
    ) -> None:
        """Another process writes the log unless it `logs`."""
        self.operation: Final = operation
        self.total = 0
        """Requests that were refused since the start."""
        self._logs = logs
        self._clock = clock
        self._why = ""
        self._at = 0.0
        self.ongoing = False
        """True if the last request was refused."""
        self._said_at = -_SAID_EVERY
        self._unsaid = 0
        self._was_said = False
        """True if the log does not say yet that it is over."""

    def wrong(self) -> str | None:
        """Return why requests are refused now, None if they are not."""
        if not self._why or self._clock() - self._at > (_STANDS if self.ongoing else _LINGERS):
            return None
        return f"storage refuses to {self.operation}: {self._why}"

    def refused(self, why: object, requests: int = 1) -> None:
        """Take account of requests that were refused, not for what they ask but for the state of the storage."""
        now = self._clock()
        self.total += requests
        self._unsaid += requests
        self._why, self._at, self.ongoing = str(why), now, True
        if self._logs and now - self._said_at >= _SAID_EVERY:
            logger.error(
                "storage refuses to %s: %s (%d requests since this was said last)", self.operation, why, self._unsaid
            )
            self._said_at, self._unsaid, self._was_said = now, 0, True

    def accepted(self) -> None:
        """Take account of a request that was done after some that were refused."""
        if not self.ongoing:
            return
        self.ongoing = False
        if self._was_said:
            self._was_said = False
            logger.warning(
                "storage does not refuse to %s any more; it has refused %d requests", self.operation, self.total
            )


class Account:
    """The refusals of one storage."""

    def __init__(self, *, logs: bool = True) -> None:
        self.reads: Final = Refusals(Operation.READ, logs=logs)
        self.writes: Final = Refusals(Operation.WRITE, logs=logs)

    def wrong(self) -> str | None:
        """Return why requests are refused now, None if they are not."""
        return self.writes.wrong() or self.reads.wrong()
