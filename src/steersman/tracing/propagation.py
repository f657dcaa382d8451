"""W3C trace context and baggage: `traceparent`, `tracestate` and `baggage`, as OpenTelemetry's propagators read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from steersman.work.patterns import late_pattern

TRACEPARENT: Final = "traceparent"
_LONGEST: Final = 8192
"""Most characters of a `tracestate` or `baggage` that is passed on."""
_PARENT: Final = late_pattern(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL)
_SAMPLED: Final = 1


class Propagated(NamedTuple):
    """Trace context that a client sent. `trace_id` is 0 if it sent only baggage."""

    trace_id: int
    span_id: int
    flags: int
    state: str
    baggage: str

    @property
    def is_sampled(self) -> bool:
        """True if the client records this trace."""
        return bool(self.flags & _SAMPLED)


def extract(headers: Mapping[str, str]) -> Propagated | None:
    """Return the trace context in headers with lower-case names; None if there is none, or only a malformed one."""
    parent = _parsed(headers.get(TRACEPARENT, ""))
    baggage = headers.get("baggage", "")
    if len(baggage) > _LONGEST:
        baggage = ""
    if parent is None:
        return Propagated(0, 0, 0, "", baggage) if baggage else None
    state = headers.get("tracestate", "")
    return Propagated(*parent, state if len(state) <= _LONGEST else "", baggage)


def _parsed(text: str) -> tuple[int, int, int] | None:
    """Return the trace id, span id and flags of a traceparent, None if it is malformed."""
    if len(text) > _LONGEST or (match := _PARENT.fullmatch(text)) is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and (rest or int(flags, 16) > _SAMPLED + 1)):
        return None
    ids = int(trace_id, 16), int(span_id, 16)
    return (*ids, int(flags, 16) & _SAMPLED) if all(ids) else None


def traceparent(trace_id: int, span_id: int, *, sampled: bool) -> str:
    """Return the text of a traceparent."""
    return f"00-{trace_id:032x}-{span_id:016x}-{int(sampled):02x}"
