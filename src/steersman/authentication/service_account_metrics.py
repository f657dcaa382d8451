"""Metrics of the use of service account tokens by origin (pkg/serviceaccount/metrics.go)."""

from __future__ import annotations

from typing import Final

from steersman.machinery.metrics import Counter, Registry


class ServiceAccountMetrics:
    """Counters of token uses; tokens in the token cache are not counted again."""

    def __init__(self, registry: Registry) -> None:
        def counter(name: str, text: str) -> Counter:
            counts = Counter(f"serviceaccount_{name}", f"[ALPHA] Cumulative {text}")
            counts.inc(by=0)
            registry.add(counts)
            return counts

        self.legacy: Final = counter("legacy_tokens_total", "legacy service account tokens used")
        self.stale: Final = counter("stale_tokens_total", "stale projected service account tokens used")
        self.valid: Final = counter("valid_tokens_total", "valid projected service account tokens used")
        self.manual: Final = counter("legacy_manual_token_uses_total", "manually created legacy tokens used")
        self.generated: Final = counter("legacy_auto_token_uses_total", "auto-generated legacy tokens used")
        self.invalid: Final = counter(
            "invalid_legacy_auto_token_uses_total", "invalid auto-generated legacy tokens used"
        )
