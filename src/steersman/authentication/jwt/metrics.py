"""Metrics of JWT authenticators (apiserver `token/oidc/metrics.go`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.machinery.metrics import Computed, Gauge, Histogram, Registry, sha256_label
from steersman.machinery.values import times

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class JWTMetrics:
    """Metrics of all issuers; `server` is this server's identity."""

    def __init__(self, registry: Registry, server: str) -> None:
        self.server: Final = sha256_label(server)
        self.latency: Final = Histogram(
            "apiserver_authentication_jwt_authenticator_latency_seconds",
            "Duration of the authentication of tokens that were not cached",
            _BUCKETS,
            ("result", "jwt_issuer_hash"),
        )
        self.fetched: Final = Gauge(
            "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
            "Time of the last fetch of an issuer's keys",
            ("result", "jwt_issuer_hash", "apiserver_id_hash"),
        )
        self.key_sets: Final[dict[str, str]] = {}
        info = Computed(
            "gauge",
            "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
            "Hash of the last fetched keys of an issuer",
            ("jwt_issuer_hash", "apiserver_id_hash", "hash"),
            self._infos,
        )
        registry.add(self.latency, self.fetched, info)

    def for_issuer(self, issuer: str) -> IssuerMetrics:
        """Return the metrics of one issuer."""
        return IssuerMetrics(self, sha256_label(issuer))

    def forget(self, issuer: str) -> None:
        """Remove the metrics about an issuer's keys."""
        self.key_sets.pop(sha256_label(issuer), None)
        for result in ("success", "failure"):
            self.fetched.remove((result, sha256_label(issuer), self.server))

    def _infos(self) -> Iterable[tuple[tuple[str, ...], float]]:
        return [((issuer, self.server, keys), 1.0) for issuer, keys in self.key_sets.items()]


class IssuerMetrics:
    """Metrics of one issuer."""

    def __init__(self, metrics: JWTMetrics, issuer: str) -> None:
        self._metrics = metrics
        self._issuer = issuer

    def observe(self, seconds: float, *, is_good: bool) -> None:
        """Count an authentication."""
        self._metrics.latency.observe(seconds, ("success" if is_good else "failure", self._issuer))

    def keys_fetched(self, document: bytes) -> None:
        """Record a successful fetch of keys."""
        self._metrics.key_sets[self._issuer] = sha256_label(document)
        self._metrics.fetched.set(times.unix_now(), ("success", self._issuer, self._metrics.server))

    def keys_failed(self) -> None:
        """Record a failed fetch of keys."""
        self._metrics.fetched.set(times.unix_now(), ("failure", self._issuer, self._metrics.server))
