"""Values encrypted with keys that a KMS plugin wraps: their stored form, and how they are decrypted.

Follows k8s.io/apiserver `storage/value/encrypt/envelope/kmsv2/envelope.go`. A value is encrypted with a key derived
from a seed, and stored together with the seed, wrapped by the plugin. Therefore the plugin is called once for each
seed, not for each value.
"""

from __future__ import annotations

import struct
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Final

from steersman.machinery.errors.field import Path, aggregate
from steersman.machinery.metrics import sha256_label
from steersman.machinery.validation.domains import is_fully_qualified_domain_name
from steersman.machinery.values import times
from steersman.net import protobuf_fields as proto
from steersman.storage.encryption.ciphers import AESGCMCipher, DerivedGCMCipher
from steersman.storage.encryption.kms.plugin import Plugin, Wrapped
from steersman.storage.encryption.metrics import EnvelopeMetrics
from steersman.storage.encryption.transformer import NeedsKey, Opened, Transformer, TransformError, aggregate_texts
from steersman.work.single_flight import SingleFlight

KEY: Final = 0
"""The wrapped bytes are an AES-GCM key, as old servers wrote."""
SEED: Final = 1
"""The wrapped bytes are a seed from which keys are derived (HKDF_SHA256_XNONCE_AES_GCM_SEED)."""
_MOST_ANNOTATIONS: Final = 32 * 1024
_MOST_NAMES: Final = 256
"""The most annotations, which are validated for every decrypted value. Upstream only limits their size."""
_MOST_KEY_ID: Final = 1024
_MOST_WRAPPED: Final = 1024
"""Limits in bytes."""
_LONGEST_KEY: Final = 1024
"""The most bytes of an unwrapped seed. Seeds are created with 32 bytes, but the plugin may return any number."""
_MOST_SEEDS: Final = 10_000
"""The most decrypted seeds to keep. The least recently used one is removed first."""


@dataclass(frozen=True, slots=True)
class EncryptedObject:
    """The stored form, which is the protobuf message of this name. `source` is the wrapped seed or key."""

    data: bytes
    source: Wrapped
    source_type: int

    def encode(self) -> bytes:
        """Encode the message."""
        source = self.source
        return proto.encode(
            [
                (1, self.data),
                (2, source.key_id),
                (3, source.ciphertext),
                *proto.encode_map(4, source.annotations),
                (5, self.source_type),
            ]
        )

    @classmethod
    def decode(cls, stored: bytes) -> EncryptedObject:
        """Decode and check a message. Raises TransformError."""
        try:
            fields = proto.decode(stored)
            source = Wrapped(proto.bytes_of(fields, 3), proto.text_of(fields, 2), proto.map_of(fields, 4))
            found = cls(proto.bytes_of(fields, 1), source, proto.number_of(fields, 5))
        except proto.FieldsError as error:
            raise TransformError(str(error)) from None
        found.check()
        return found

    def check(self) -> None:
        """Check that the parts are not empty and not too large. Raises TransformError."""
        if self.source_type not in (KEY, SEED):
            raise TransformError(f"unknown encryptedDEKSourceType: {self.source_type}")
        if not self.data:
            raise TransformError("encrypted data is empty")
        check_source(self.source)


def check_source(source: Wrapped) -> None:
    """Check that a wrapped seed may be stored. Raises TransformError."""
    size = len(source.ciphertext)
    why = "encrypted DEK source is empty" if not size else ""
    if size > _MOST_WRAPPED:
        why = f"encrypted DEK source is {size} bytes, which exceeds the max size of {_MOST_WRAPPED}"
    if why:
        raise TransformError(f"failed to validate encrypted DEK source: {why}")
    if wrong := key_id_error(source.key_id):
        raise TransformError(f"failed to validate key id: {wrong[1]}")
    if source.annotations:
        _check_annotations(source.annotations)


def key_id_error(key_id: str) -> tuple[str, str] | None:
    """Return the error of a key ID, as a label for metrics and as upstream's text."""
    if not key_id:
        return "empty", "keyID is empty"
    size = len(key_id.encode())
    if size > _MOST_KEY_ID:
        return "too_long", f"keyID is {size} bytes, which exceeds the max size of {_MOST_KEY_ID}"
    return None


def _check_annotations(annotations: Mapping[str, bytes]) -> None:
    if len(annotations) > _MOST_NAMES:
        raise TransformError(f"failed to validate annotations: there are more than {_MOST_NAMES}")
    errors = []
    for name in sorted(annotations):
        if found := list(is_fully_qualified_domain_name(name, Path("annotations"))):
            errors.append(aggregate(found))
    size = sum(len(name.encode()) + len(value) for name, value in annotations.items())
    if size > _MOST_ANNOTATIONS:
        errors.append(f"total size of annotations is {size}, which exceeds the max size of {_MOST_ANNOTATIONS}")
    if errors:
        raise TransformError(f"failed to validate annotations: {aggregate_texts(errors)}")


@dataclass(frozen=True)
class ActiveSeed:
    """The seed and key with which values are now encrypted."""

    cipher: DerivedGCMCipher
    source: Wrapped
    fingerprint: bytes
    after_data: bytes
    """The bytes that follow the data in an EncryptedObject."""
    source_type = SEED

    @classmethod
    def create(cls, seed: bytes, source: Wrapped) -> ActiveSeed:
        """Raises TransformError if the wrapped seed may not be stored."""
        check_source(source)
        without_data = EncryptedObject(b"", source, SEED).encode()
        return cls(DerivedGCMCipher(seed), source, _fingerprint(source, SEED), without_data)


class SeedState:
    """The current seed of a plugin, which is maintained by the plugin's probe."""

    def __init__(self, clock: Callable[[], float] = times.monotonic) -> None:
        self.active_seed: ActiveSeed | None = None
        self.expires = 0.0
        """The time until which values are encrypted with it."""
        self.clock: Final = clock
        """Returns monotonic seconds."""

    @property
    def expiration(self) -> str:
        """The expiry as a Kubernetes Time."""
        if not self.expires:
            return "0001-01-01T00:00:00Z"
        return _time(times.unix_now() + self.expires - self.clock())


class EnvelopeTransformer:
    """See the module. `name` is the provider's name."""

    def __init__(self, name: str, plugin: Plugin, current: SeedState, metrics: EnvelopeMetrics) -> None:
        self._name = name
        self._plugin = plugin
        self._current = current
        self._metrics = metrics
        self._seeds: OrderedDict[bytes, Transformer] = OrderedDict()
        self._asked: SingleFlight[bytes, None] = SingleFlight()
        """The seeds that the plugin is unwrapping."""

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return the value encrypted with the present seed, followed by the wrapped seed.

        Raises TransformError if no seed is there or its time is over.
        """
        active_seed = self._state()
        if self._current.clock() > self._current.expires:
            raise TransformError(
                f'encryptedDEKSource with keyID hash "{sha256_label(active_seed.source.key_id)}" expired at '
                f"{self._current.expiration} (current time is {_time(times.unix_now())})"
            )
        self._keep(active_seed.fingerprint, active_seed.cipher)
        data = active_seed.cipher.seal(value, path)
        self._metrics.record_use("to_storage", self._name, active_seed.source.key_id)
        return proto.encode([(1, data)]) + active_seed.after_data

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the value, which is stale if its seed was wrapped by another key of the plugin, or is of another type.

        Raises NeedsKey if the plugin has to unwrap the seed first, and TransformError.
        """
        found = EncryptedObject.decode(stored)
        active_seed = self._state()
        fingerprint = _fingerprint(found.source, found.source_type)
        cipher = self._seeds.get(fingerprint)
        if cipher is None:
            raise NeedsKey(partial(self._fetch, found.source, found.source_type, fingerprint))
        self._seeds.move_to_end(fingerprint)
        self._metrics.record_use("from_storage", self._name, found.source.key_id)
        opened = cipher.open(found.data, path)
        is_stale = found.source.key_id != active_seed.source.key_id or found.source_type != active_seed.source_type
        return Opened(opened.value, is_stale)

    def _state(self) -> ActiveSeed:
        if self._current.active_seed is None:
            raise TransformError("got unexpected nil transformer")
        return self._current.active_seed

    async def _fetch(self, source: Wrapped, source_type: int, fingerprint: bytes) -> None:
        """Let the plugin unwrap a seed, once for all concurrent callers. Raises TransformError."""
        await self._asked.do(fingerprint, partial(self._unwrap, source, source_type, fingerprint))

    async def _unwrap(self, source: Wrapped, source_type: int, fingerprint: bytes) -> None:
        self._metrics.cache_misses.inc()
        try:
            key = await self._plugin.decrypt(source, str(uuid.uuid4()))
        except TransformError as error:
            raise TransformError(f"failed to decrypt DEK, error: {error}", error.code) from None
        if len(key) > _LONGEST_KEY:
            raise TransformError(f"failed to decrypt DEK, error: it is longer than {_LONGEST_KEY} bytes")
        if source_type == SEED:
            self._keep(fingerprint, DerivedGCMCipher(key))
        elif len(key) in (16, 24, 32):
            self._keep(fingerprint, AESGCMCipher(key))
        else:
            raise TransformError(f"crypto/aes: invalid key size {len(key)}")

    def _keep(self, fingerprint: bytes, cipher: Transformer) -> None:
        self._seeds[fingerprint] = cipher
        self._seeds.move_to_end(fingerprint)
        if len(self._seeds) > _MOST_SEEDS:
            self._seeds.popitem(last=False)
        self._metrics.cache_size.set(len(self._seeds), (self._name,))


def _time(moment: float) -> str:
    return times.format_time(datetime.fromtimestamp(moment, UTC))


def _fingerprint(source: Wrapped, source_type: int) -> bytes:
    """Return the cache key of a seed: a hash of all parts of its wrapped form, each preceded by its length."""
    parts = [source.ciphertext, source.key_id.encode()]
    for name in sorted(source.annotations):
        parts += [name.encode(), source.annotations[name]]
    digest = sha256(struct.pack(">I", source_type))
    for part in parts:
        digest.update(struct.pack(">I", len(part)) + part)
    return digest.digest()
