"""Where a slow request has spent its time, as its event tells it (k8s.io/apiserver `request.LatencyTrackers`).

Objects are kept as they are sent, so that reading, transforming and encoding them are not told apart here.
"""

from __future__ import annotations

from typing import Final

from steersman.machinery.values.durations import format_duration

SLOW_SECONDS: Final = 0.5
"""What took no longer says nothing of it."""
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
"""Several at the same time: the longest counts, of others their sum."""


class Latencies:
    """Seconds of one request, by what they were spent on."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def took(self, layer: str, seconds: float) -> None:
        """Counts a time that a layer took."""
        before = self._seconds.get(layer, 0.0)
        self._seconds[layer] = max(before, seconds) if layer in _LONGEST_COUNTS else before + seconds

    def annotations(self, total: float) -> dict[str, str]:
        """What is to be told of a request that took this long; nothing of a fast one."""
        if total <= SLOW_SECONDS:
            return {}
        spent = {layer: seconds for layer, seconds in self._seconds.items() if seconds}
        if not spent:
            return {}
        spent[_TOTAL] = total
        return {_PREFIX + layer: format_duration(int(seconds * 1e9)) for layer, seconds in spent.items()}
