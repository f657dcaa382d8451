"""Readers of traces. A request is traced only if a reader wants it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from steersman.tracing.propagation import TRACEPARENT, extract
from steersman.tracing.trace import Trace

logger = logging.getLogger(__name__)


class Reader(Protocol):
    """A reader of traces. Its methods must not wait, and run on the event loop."""

    @property
    def least_seconds(self) -> float:
        """Return the duration below which the reader needs no trace, 0 for all."""
        ...

    @property
    def reads_filters(self) -> bool:
        """Return True if the reader needs the steps of filters, False if those of handlers suffice."""
        ...

    def wants(self, trace: Trace) -> bool:
        """Return True if the reader wants this trace, which has just begun."""
        ...

    def ended(self, trace: Trace) -> None:
        """Take a trace whose request has been answered to its last byte."""
        ...


class Readers:
    """The readers of a server's traces."""

    def __init__(self) -> None:
        self.registered: tuple[Reader, ...] = ()

    def add(self, reader: Reader) -> Callable[[], None]:
        """Add a reader; return a function that removes it, and does nothing the second time."""
        self.registered = (*self.registered, reader)

        def remove() -> None:
            self.registered = tuple(each for each in self.registered if each is not reader)

        return remove

    def begin(self, name: str, headers: Mapping[str, str]) -> Trace | None:
        """Return a trace for a request with these headers, by lower-case names; None if nothing needs one.

        Without a reader, only the trace context of a client that sends one is kept, to be passed on.
        """
        propagated = extract(headers) if TRACEPARENT in headers or "baggage" in headers else None
        if not self.registered and propagated is None:
            return None
        trace = Trace(name, propagated)
        trace.readers = tuple([each for each in self.registered if each.wants(trace)])
        return trace if trace.readers or propagated is not None else None

    def is_needed(self, trace: Trace) -> bool:
        """Return True if a reader needs the trace, whose request has just ended; the others are left out."""
        trace.end()
        seconds = trace.seconds
        trace.readers = tuple([each for each in trace.readers if seconds >= each.least_seconds])
        return bool(trace.readers)

    def end(self, trace: Trace) -> None:
        """Pass an ended trace to its readers. The failure of a reader is logged, and reaches neither client nor reader."""
        for each in trace.readers:
            try:
                each.ended(trace)
            except Exception:
                logger.exception("a reader of traces failed")
