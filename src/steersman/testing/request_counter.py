"""Reader of the traces of a test's server that counts requests for a report."""

from __future__ import annotations

from steersman.report.tally import Tally
from steersman.tracing.documents import summary
from steersman.tracing.trace import Trace


class RequestCounter:
    """Counts every request (tracing.readers.Reader)."""

    least_seconds = 0.0
    wants_all = True
    reads_spans = False

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def wants(self, trace: Trace) -> bool:
        """Return True: every request counts."""
        return True

    def ended(self, trace: Trace) -> None:
        """Count a request."""
        self._tally.add(summary(trace))
