"""Values under keys that a KMS plugin wraps: what is stored of them, and how it is opened.

Follows k8s.io/apiserver `storage/value/encrypt/envelope/kmsv2/envelope.go`. A value is sealed with a key derived from a
seed, and the seed, wrapped by the plugin, is stored beside it: the plugin is asked once for each seed, not each value.
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
from steersman.storage.encryption.transformer import NeedsKey, Opened, Transformer, TransformError, together
from steersman.work.single_flight import SingleFlight

KEY: Final = 0
"""The wrapped bytes are a key of AES-GCM, as old servers wrote..."""
SEED: Final = 1
"""...or a seed that keys are derived from (HKDF_SHA256_XNONCE_AES_GCM_SEED)."""
_MOST_ANNOTATIONS: Final = 32 * 1024
_MOST_NAMES: Final = 256
"""Of annotations, which are judged for every value that is opened. Upstream bounds their size alone."""
_MOST_KEY_ID: Final = 1024
_MOST_WRAPPED: Final = 1024
"""Bytes."""
_LONGEST_KEY: Final = 1024
"""Bytes of a seed that is unwrapped: 32 are made, and any number may come back."""
_MOST_SEEDS: Final = 10_000
"""Kept decrypted; the one used longest ago goes first."""


@dataclass(frozen=True, slots=True)
class EncryptedObject:
    """What is stored, in the protobuf message of this name; `source` is the wrapped seed, or key."""

    data: bytes
    source: Wrapped
    source_type: int

    def encode(self) -> bytes:
        """The message."""
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
        """Raises TransformError."""
        try:
            fields = proto.decode(stored)
            source = Wrapped(proto.bytes_of(fields, 3), proto.text_of(fields, 2), proto.map_of(fields, 4))
            found = cls(proto.bytes_of(fields, 1), source, proto.number_of(fields, 5))
        except proto.FieldsError as error:
            raise TransformError(str(error)) from None
        found.check()
        return found

    def check(self) -> None:
        """Raises TransformError for what is empty or too large."""
        if self.source_type not in (KEY, SEED):
            raise TransformError(f"unknown encryptedDEKSourceType: {self.source_type}")
        if not self.data:
            raise TransformError("encrypted data is empty")
        check_source(self.source)


def check_source(source: Wrapped) -> None:
    """Raises TransformError for a wrapped seed that may not be stored."""
    size = len(source.ciphertext)
    why = "encrypted DEK source is empty" if not size else ""
    if size > _MOST_WRAPPED:
        why = f"encrypted DEK source is {size} bytes, which exceeds the max size of {_MOST_WRAPPED}"
    if why:
        raise TransformError(f"failed to validate encrypted DEK source: {why}")
    if wrong := wrong_with_key_id(source.key_id):
        raise TransformError(f"failed to validate key id: {wrong[1]}")
    if source.annotations:
        _check_annotations(source.annotations)


def wrong_with_key_id(key_id: str) -> tuple[str, str] | None:
    """What is wrong with the id of a key: for metrics, and in upstream's words."""
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
        raise TransformError(f"failed to validate annotations: {together(errors)}")


@dataclass(frozen=True)
class Writing:
    """What values are sealed with now."""

    cipher: DerivedGCMCipher
    source: Wrapped
    fingerprint: bytes
    after_data: bytes
    """What follows the data in an EncryptedObject."""
    source_type = SEED

    @classmethod
    def of(cls, seed: bytes, source: Wrapped) -> Writing:
        """Raises TransformError for a wrapped seed that may not be stored."""
        check_source(source)
        without_data = EncryptedObject(b"", source, SEED).encode()
        return cls(DerivedGCMCipher(seed), source, _fingerprint(source, SEED), without_data)


class Current:
    """What the values of a plugin are sealed with, kept up by its probe."""

    def __init__(self, clock: Callable[[], float] = times.monotonic) -> None:
        self.writing: Writing | None = None
        self.expires = 0.0
        """Until then values are sealed with it."""
        self.clock: Final = clock
        """Gives seconds that only grow."""

    @property
    def expiration(self) -> str:
        """When it expires, as a Time."""
        if not self.expires:
            return "0001-01-01T00:00:00Z"
        return _time(times.unix_now() + self.expires - self.clock())


class EnvelopeTransformer:
    """See the module. `name` is the provider's."""

    def __init__(self, name: str, plugin: Plugin, current: Current, metrics: EnvelopeMetrics) -> None:
        self._name = name
        self._plugin = plugin
        self._current = current
        self._metrics = metrics
        self._seeds: OrderedDict[bytes, Transformer] = OrderedDict()
        self._asked: SingleFlight[bytes, None] = SingleFlight()
        """Seeds that the plugin is unwrapping."""

    def seal(self, value: bytes, path: bytes) -> bytes:
        writing = self._state()
        if self._current.clock() > self._current.expires:
            raise TransformError(
                f'encryptedDEKSource with keyID hash "{sha256_label(writing.source.key_id)}" expired at '
                f"{self._current.expiration} (current time is {_time(times.unix_now())})"
            )
        self._keep(writing.fingerprint, writing.cipher)
        data = writing.cipher.seal(value, path)
        self._metrics.used("to_storage", self._name, writing.source.key_id)
        return proto.encode([(1, data)]) + writing.after_data

    def open(self, stored: bytes, path: bytes) -> Opened:
        found = EncryptedObject.decode(stored)
        writing = self._state()
        fingerprint = _fingerprint(found.source, found.source_type)
        cipher = self._seeds.get(fingerprint)
        if cipher is None:
            raise NeedsKey(partial(self._fetch, found.source, found.source_type, fingerprint))
        self._seeds.move_to_end(fingerprint)
        self._metrics.used("from_storage", self._name, found.source.key_id)
        opened = cipher.open(found.data, path)
        is_stale = found.source.key_id != writing.source.key_id or found.source_type != writing.source_type
        return Opened(opened.value, is_stale)

    def _state(self) -> Writing:
        if self._current.writing is None:
            raise TransformError("got unexpected nil transformer")
        return self._current.writing

    async def _fetch(self, source: Wrapped, source_type: int, fingerprint: bytes) -> None:
        """Has a seed unwrapped, once for all who need it at the same time. Raises TransformError."""
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
    """What a seed is kept under: a hash of everything that says which it is, none of its parts open to doubt."""
    parts = [source.ciphertext, source.key_id.encode()]
    for name in sorted(source.annotations):
        parts += [name.encode(), source.annotations[name]]
    digest = sha256(struct.pack(">I", source_type))
    for part in parts:
        digest.update(struct.pack(">I", len(part)) + part)
    return digest.digest()
