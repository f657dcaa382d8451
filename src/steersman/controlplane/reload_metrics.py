"""Metrics of configuration files that are reloaded while the server runs.

Follows k8s.io/apiserver `server/options/authorizationconfig/metrics` and its sibling packages.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.machinery.metrics import Computed, Counter, Gauge, Labels, Registry, sha256_label
from steersman.machinery.values import times


class ReloadMetrics:
    """Metrics of one file: counts of reloads, and the hash of the current data, initially `data`.

    `what` is authentication, authorization or encryption; `server` is this server's identity.
    """

    def __init__(self, registry: Registry, what: str, server: str, data: bytes) -> None:
        self._server = sha256_label(server)
        self._hash = sha256_label(data)
        prefix = f"apiserver_{what}_config_controller"
        split = "split by status and apiserver identity."
        stability = "[ALPHA]" if what == "encryption" else "[BETA]"
        self._total = Counter(
            f"{prefix}_automatic_reloads_total",
            f"{stability} Total number of automatic reloads of {what} configuration {split}",
            ("status", "apiserver_id_hash"),
        )
        self._last = Gauge(
            f"{prefix}_automatic_reload_last_timestamp_seconds",
            f"{stability} Timestamp of the last automatic reload of {what} configuration {split}",
            ("status", "apiserver_id_hash"),
        )
        info = Computed(
            "gauge",
            f"{prefix}_last_config_info",
            f"[ALPHA] Information about the last applied {what} configuration with hash as label, split by apiserver "
            "identity.",
            ("apiserver_id_hash", "hash"),
            self._infos,
        )
        registry.add(self._total, self._last, info)

    def failed(self) -> None:
        """Count a failed reload."""
        self._count("failure")

    def succeeded(self, data: bytes) -> None:
        """Count a successful reload of `data`."""
        self._hash = sha256_label(data)
        self._count("success")

    def _count(self, status: str) -> None:
        labels = (status, self._server)
        self._total.inc(labels)
        self._last.set(times.unix_now(), labels)

    def _infos(self) -> Iterable[tuple[Labels, float]]:
        return [((self._server, self._hash), 1.0)] if self._hash else []
