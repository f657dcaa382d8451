"""Metrics of encryption (k8s.io/apiserver `storage/value/metrics.go`, `encrypt/envelope/metrics/metrics.go`)."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import Final

from steersman.machinery.metrics import Counter, Gauge, Histogram, Registry, sha256_label
from steersman.machinery.values import times

cached_label: Final = lru_cache(256)(sha256_label)
"""Hash of a key ID for labels, cached."""
_MAX_CACHED_LENGTH: Final = 1024
"""The most characters of a cached ID. Valid IDs are not longer, but a plugin may send megabytes."""
_MOST_KEY_IDS: Final = 100
"""The most key IDs with series at once, as upstream."""


def _hashed_id(key_id: str) -> str:
    """Return the hash of a key ID for labels and messages, which is needed for every encrypted or decrypted value."""
    return cached_label(key_id) if len(key_id) <= _MAX_CACHED_LENGTH else sha256_label(key_id)


class TransformationMetrics:
    """Metrics of encrypted and decrypted values."""

    def __init__(self) -> None:
        self.durations: Final = Histogram(
            "apiserver_storage_transformation_duration_seconds",
            "[ALPHA] Latencies in seconds of value transformation operations.",
            tuple(5e-6 * 2**power for power in range(25)),
            ("transformation_type", "transformer_prefix"),
        )
        self.operations: Final = Counter(
            "apiserver_storage_transformation_operations_total",
            "[ALPHA] Total number of transformations. Successful transformation will have a status 'OK' and a varied "
            "status string when the transformation fails. The status, resource, and transformation_type fields can be "
            "used for alerting purposes. For example, you can monitor for encryption/decryption failures using the "
            "transformation_type (e.g., from_storage for decryption and to_storage for encryption). Additionally, "
            "these fields can be used to ensure that the correct transformers are applied to each resource.",
            ("resource", "transformation_type", "transformer_prefix", "status"),
        )

    def register(self, registry: Registry) -> None:
        """Register the metrics."""
        registry.add(self.durations, self.operations)

    def record_success(self, resource: str, kind: str, prefix: bytes, seconds: float) -> None:
        """Record a value. `kind` is to_storage or from_storage."""
        shown = prefix.decode("utf-8", "replace")
        self.operations.inc((resource, kind, shown, "OK"))
        self.durations.observe(seconds, (kind, shown))

    def record_failure(self, resource: str, kind: str, prefix: bytes, code: str) -> None:
        """Count a value that could not be encrypted or decrypted."""
        self.operations.inc((resource, kind, prefix.decode("utf-8", "replace"), code))


class EnvelopeMetrics:
    """Metrics of the calls of KMS plugins, and of their keys. `server` is this server's identity."""

    def __init__(self, server: str) -> None:
        self._server = sha256_label(server)
        ids = ("transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash")
        name = "apiserver_envelope_encryption"
        self.latency: Final = Histogram(
            f"{name}_kms_operations_latency_seconds",
            "Seconds that calls of KMS plugins took",
            tuple(1e-4 * 2**power for power in range(20)),
            ("provider_name", "method_name", "grpc_status_code"),
        )
        self.key_ids: Final = Counter(f"{name}_key_id_hash_total", "Times that the key of an id was used", ids)
        self.key_ids_last: Final = Gauge(
            f"{name}_key_id_hash_last_timestamp_seconds", "When the key of an id was used last", ids
        )
        self.status_last: Final = Gauge(
            f"{name}_key_id_hash_status_last_timestamp_seconds",
            "When a KMS plugin named the id of a key as its own last",
            ids[1:],
        )
        self.invalid_key_ids: Final = Counter(
            f"{name}_invalid_key_id_from_status_total", "Ids of keys that were none", ("provider_name", "error")
        )
        self.cache_size: Final = Gauge(
            f"{name}_dek_source_cache_size", "Seeds of keys that are kept decrypted", ("provider_name",)
        )
        self.cache_misses: Final = Counter(
            "apiserver_storage_envelope_transformation_cache_misses_total",
            "[ALPHA] Total number of cache misses while accessing key decryption key(KEK).",
        )
        self.generated: Final = Histogram(
            "apiserver_storage_data_key_generation_duration_seconds",
            "[ALPHA] Latencies in seconds of data encryption key(DEK) generation operations.",
            tuple(5e-6 * 2**power for power in range(14)),
        )
        self._used: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._told: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def register(self, registry: Registry) -> None:
        """Register the metrics."""
        registry.add(
            self.latency,
            self.key_ids,
            self.key_ids_last,
            self.status_last,
            self.invalid_key_ids,
            self.cache_size,
            self.cache_misses,
            self.generated,
        )

    def record_use(self, kind: str, provider: str, key_id: str) -> None:
        """Record that a value was encrypted or decrypted with the key of an ID."""
        labels = (kind, provider, _hashed_id(key_id), self._server)
        for gone in _mark_recent(self._used, labels):
            self.key_ids_last.remove(gone)
            self.key_ids.remove(gone)
        self.key_ids.inc(labels)
        self.key_ids_last.set(times.unix_now(), labels)

    def record_status(self, provider: str, key_id: str) -> None:
        """Record the key ID that a plugin has reported."""
        labels = (provider, sha256_label(key_id), self._server)
        for gone in _mark_recent(self._told, labels):
            self.status_last.remove(gone)
        self.status_last.set(times.unix_now(), labels)


def _mark_recent(seen: OrderedDict[tuple[str, ...], None], labels: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Mark these labels as the most recent ones, and return the labels that are removed to make room for them."""
    seen[labels] = None
    seen.move_to_end(labels)
    return [seen.popitem(last=False)[0] for _ in range(len(seen) - _MOST_KEY_IDS)]
