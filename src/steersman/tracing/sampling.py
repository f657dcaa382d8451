"""Sampling of exported traces, as OpenTelemetry's SDK for Go samples (`ParentBased(TraceIDRatioBased)`)."""

from __future__ import annotations

from random import getrandbits
from typing import Final

from steersman.tracing.propagation import Propagated

_MILLION: Final = 1_000_000


class Sampling:
    """Trace ids of one request, and which of them are exported.

    The span of authentication has a trace of its own. The span of the request belongs to the client's trace if the
    client is trusted, to that of authentication if a trusted client has sent none, and else to a new one.
    `parent_id` is the id of the client's span, 0 without one. `link` is the context of a client that is not trusted.
    """

    __slots__ = ("_new_id", "_rate", "authentication_id", "link", "parent_id", "sampled", "state", "trace_id")

    def __init__(self, rate_per_million: int) -> None:
        self._rate = rate_per_million
        self.authentication_id: Final = getrandbits(128) or 1
        self._new_id = getrandbits(128) or 1
        self.trace_id = 0
        self.parent_id = 0
        self.sampled = False
        self.state = ""
        self.link: Propagated | None = None

    def may_be_sampled(self, propagated: Propagated | None) -> bool:
        """Return True if a span of the request may be exported; the client is not known yet."""
        return (
            self.authentication_sampled
            or self._is_sampled(self._new_id)
            or (propagated is not None and propagated.is_sampled)
        )

    @property
    def authentication_sampled(self) -> bool:
        """True if the span of authentication is exported."""
        return self._is_sampled(self.authentication_id)

    def decide(self, propagated: Propagated | None, *, trusted: bool) -> None:
        """Choose the trace of the request, once its user is known."""
        has_parent = propagated is not None and propagated.trace_id
        if not trusted:
            self.trace_id = self._new_id
            self.sampled = self._is_sampled(self._new_id)
            self.link = propagated if has_parent else None
        elif propagated is not None and has_parent:
            self.trace_id, self.parent_id = propagated.trace_id, propagated.span_id
            self.sampled, self.state = propagated.is_sampled, propagated.state
        else:
            self.trace_id = self.authentication_id
            self.sampled = self.authentication_sampled

    def _is_sampled(self, trace_id: int) -> bool:
        return (trace_id & (1 << 64) - 1) >> 1 < (self._rate << 63) // _MILLION
