"""The contract of ciphers, which convert between values and their stored form, and lists of ciphers with prefixes.

Follows k8s.io/apiserver `storage/value`: the prefixes, the errors and the conditions for stale values are the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter
from typing import NamedTuple, Protocol

from steersman.storage.encryption.metrics import TransformationMetrics


class TransformError(Exception):
    """A value cannot be encrypted or decrypted. `code` is the reason in metrics."""

    def __init__(self, why: str, code: str = "unknown-non-grpc") -> None:
        super().__init__(why)
        self.code = code


class Opened(NamedTuple):
    """A decrypted value. `is_stale` means that it should be encrypted again even if it does not change."""

    value: bytes
    is_stale: bool


class NeedsKey(Exception):
    """A value can be decrypted once its key has been fetched."""

    def __init__(self, fetch: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the key of a value is not there yet")
        self._fetch = fetch
        self._failed: list[Callable[[TransformError], None]] = []

    def on_failure(self, tell: Callable[[TransformError], None]) -> None:
        """Add a callback for the error if the key cannot be fetched."""
        self._failed.append(tell)

    async def fetch(self) -> None:
        """Fetch the key. Raises TransformError."""
        try:
            await self._fetch()
        except TransformError as error:
            for tell in self._failed:
                tell(error)
            raise


class Transformer(Protocol):
    """A way to store values. `path` is the key of the value. It is authenticated together with the value, if the way
    supports that.
    """

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return the stored form of a value. Raises TransformError."""
        ...

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the value. Raises TransformError and NeedsKey."""
        ...


class Prefixed(NamedTuple):
    """A transformer and the prefix of everything that it has encrypted."""

    prefix: bytes
    transformer: Transformer


class PrefixedTransformers:
    """The transformers of one resource, or the keys of one provider. The first one encrypts, and each decrypts what has
    its prefix.

    Values that were encrypted by another than the first are stale. `nothing_matches` is the error for an unknown
    prefix.
    """

    def __init__(
        self, resource: str, transformers: Sequence[Prefixed], nothing_matches: str, metrics: TransformationMetrics
    ) -> None:
        self._resource = resource
        self._transformers = tuple(transformers)
        self._nothing_matches = nothing_matches
        self._metrics = metrics

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Encrypt with the first transformer, record metrics, and return the result after its prefix."""
        prefix, transformer = self._transformers[0]
        started = perf_counter()
        try:
            sealed = transformer.seal(value, path)
        except TransformError as error:
            self._metrics.record_failure(self._resource, "to_storage", prefix, error.code)
            raise
        self._metrics.record_success(self._resource, "to_storage", prefix, perf_counter() - started)
        return prefix + sealed if prefix else sealed

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Decrypt with the transformers whose prefix fits, in order, until one succeeds; record metrics.

        Raises NeedsKey, and TransformError with the errors of all these transformers.
        """
        started = perf_counter()
        errors: list[TransformError] = []
        for number, (prefix, transformer) in enumerate(self._transformers):
            if not stored.startswith(prefix):
                continue
            try:
                value, is_stale = transformer.open(stored[len(prefix) :] if prefix else stored, path)
            except NeedsKey as missing:
                missing.on_failure(lambda error, prefix=prefix: self._failed(prefix, error))  # type: ignore[misc]
                raise
            except TransformError as error:
                if prefix:  # another provider may have the key, or this is not an unencrypted value
                    self._failed(prefix, error)
                    errors.append(error)
                continue
            self._metrics.record_success(
                self._resource, "from_storage", prefix or b"identity", perf_counter() - started
            )
            return Opened(value, is_stale or number > 0)
        if not errors:
            self._metrics.record_failure(self._resource, "from_storage", b"unknown", "unknown-non-grpc")
            raise TransformError(self._nothing_matches)
        raise TransformError(aggregate_texts(map(str, errors)), errors[0].code)

    def _failed(self, prefix: bytes, error: TransformError) -> None:
        self._metrics.record_failure(self._resource, "from_storage", prefix or b"identity", error.code)


def aggregate_texts(errors: Iterable[str]) -> str:
    """Join several errors in the format of an aggregate of Kubernetes: each text once."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
