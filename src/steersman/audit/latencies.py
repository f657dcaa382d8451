"""Latency annotations of slow requests, by layer (k8s.io/apiserver `request.LatencyTrackers`).

Objects are stored as they are sent, so there are no separate layers for reading, transforming and encoding.
"""

from __future__ import annotations

from typing import Final

from steersman.machinery.values.durations import format_duration

SLOW_SECONDS: Final = 0.5
"""Duration of a request, in seconds, above which its event has latency annotations."""
_PREFIX: Final = "apiserver.latency.k8s.io/"

AUTHENTICATION: Final = "authentication"
AUTHORIZATION: Final = "authorization"
IMPERSONATION: Final = "impersonation"
QUEUE_WAIT: Final = "apf-queue-wait"
MUTATING: Final = "mutating-webhook"
VALIDATING: Final = "validating-webhook"
STORAGE: Final = "etcd"
_TOTAL: Final = "total"

_LONGEST_COUNTS: Final = frozenset({AUTHORIZATION, QUEUE_WAIT, VALIDATING})
"""Layers whose checks run concurrently: the longest duration counts. For other layers the sum counts."""


class Latencies:
    """Seconds of one request by layer."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def add(self, layer: str, seconds: float) -> None:
        """Add a duration to a layer."""
        before = self._seconds.get(layer, 0.0)
        self._seconds[layer] = max(before, seconds) if layer in _LONGEST_COUNTS else before + seconds

    def annotations(self, total: float) -> dict[str, str]:
        """Return the annotations of a request that took `total` seconds; {} for a fast request."""
        if total <= SLOW_SECONDS:
            return {}
        spent = {layer: seconds for layer, seconds in self._seconds.items() if seconds}
        if not spent:
            return {}
        spent[_TOTAL] = total
        return {_PREFIX + layer: format_duration(int(seconds * 1e9)) for layer, seconds in spent.items()}
