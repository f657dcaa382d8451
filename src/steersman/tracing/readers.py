"""Readers of traces. A request is traced only if a reader wants it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from time import monotonic, time
from typing import Protocol

from steersman.tracing.propagation import TRACEPARENT, extract
from steersman.tracing.trace import StepKind, Trace

logger = logging.getLogger(__name__)


class Reader(Protocol):
    """A reader of traces. Its methods must not wait, and run on the event loop."""

    @property
    def least_seconds(self) -> float:
        """Return the duration below which the reader needs no trace, 0 for all."""
        ...

    @property
    def wants_all(self) -> bool:
        """Return True if the reader wants every trace."""
        ...

    @property
    def reads_spans(self) -> bool:
        """Return True if the reader needs the facts that only spans have."""
        ...

    @property
    def reads_changes(self) -> bool:
        """Return True if the reader needs the paths of the fields that a write has changed."""
        ...

    def wants(self, trace: Trace) -> bool:
        """Return True if the reader, which does not want every trace, wants this one, which has just begun."""
        ...

    def opened(self, trace: Trace) -> None:
        """Take a trace whose request is a watch that has just begun; it also comes to `ended`."""
        ...

    def ended(self, trace: Trace) -> None:
        """Take a trace whose request has been answered to its last byte."""
        ...


class EveryRequest:
    """A reader of all requests with the fields that they have changed.

    `take` is called with each trace at the end of its request, and with True also at the beginning of a watch.
    """

    least_seconds = 0.0
    wants_all = True
    reads_spans = False
    reads_changes = True

    def __init__(self, take: Callable[[Trace, bool], None]) -> None:
        self._take = take

    def wants(self, trace: Trace) -> bool:
        """Return True."""
        return True

    def opened(self, trace: Trace) -> None:
        """Pass on the trace of a watch that has just begun."""
        self._take(trace, True)

    def ended(self, trace: Trace) -> None:
        """Pass on the trace of an answered request."""
        self._take(trace, False)


class Readers:
    """The readers of a server's traces."""

    def __init__(self) -> None:
        self.registered: tuple[Reader, ...] = ()
        self.filters: tuple[tuple[StepKind, ...], ...] = ()
        """Steps of the filters that traced requests pass (see `Trace`)."""
        self.least_seconds = math.inf
        """Duration below which no reader needs a trace."""
        self.reads_spans = False
        """True if a reader needs the facts that only spans have."""
        self._want_all = True
        self._reads_changes = False

    def add(self, reader: Reader) -> Callable[[], None]:
        """Add a reader; return a function that removes it, and does nothing the second time."""
        self._register((*self.registered, reader))
        return lambda: self._register(tuple(each for each in self.registered if each is not reader))

    def _register(self, readers: tuple[Reader, ...]) -> None:
        self.registered = readers
        self.least_seconds = min((each.least_seconds for each in readers), default=math.inf)
        self.reads_spans = any(each.reads_spans for each in readers)
        self._want_all = all(each.wants_all for each in readers)
        self._reads_changes = any(each.reads_changes for each in readers)

    def begin(self, headers: Mapping[str, str]) -> Trace | None:
        """Return a trace for a request with these headers, by lower-case names; None if nothing needs one.

        Without a reader, only the trace context of a client that sends one is kept, to be passed on.
        """
        propagated = extract(headers) if TRACEPARENT in headers or "baggage" in headers else None
        readers = self.registered
        if not readers and propagated is None:
            return None
        began = monotonic()
        trace = Trace([], began, time(), propagated, readers, self.filters, [began])
        trace.reads_changes = self._reads_changes
        if self._want_all:
            return trace
        trace.readers = tuple([each for each in readers if each.wants_all or each.wants(trace)])
        return trace if trace.readers or propagated is not None else None

    def open(self, trace: Trace) -> None:
        """Pass the trace of a watch that has just begun to its readers. The failure of a reader is logged."""
        for each in trace.readers:
            try:
                each.opened(trace)
            except Exception:
                logger.exception("a reader of traces failed")

    def end(self, trace: Trace) -> None:
        """Pass an ended trace to its readers. The failure of a reader is logged, and reaches neither client nor reader."""
        seconds = trace.ended - trace.began
        for each in trace.readers:
            try:
                if seconds >= each.least_seconds:
                    each.ended(trace)
            except Exception:
                logger.exception("a reader of traces failed")
