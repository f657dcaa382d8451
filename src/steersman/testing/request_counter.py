"""Reader of the traces of a test's server that counts requests for a report."""

from __future__ import annotations

from steersman.report.tally import Tally
from steersman.tracing.documents import summary
from steersman.tracing.readers import EveryRequest
from steersman.tracing.trace import Trace


def counter_of(tally: Tally) -> EveryRequest:
    """Return a reader that counts every request."""

    def count(trace: Trace, is_open: bool) -> None:
        tally.add(summary(trace, is_open=is_open))

    return EveryRequest(count)
