"""CPU time of encrypting and decrypting values, by provider: `python bench/encryption.py`."""

from __future__ import annotations

import time
from collections.abc import Callable

from steersman.storage.encryption.ciphers import AESCBCCipher, AESGCMCipher, Identity, SecretboxCipher
from steersman.storage.encryption.kms.envelope import ActiveSeed, EnvelopeTransformer, SeedState
from steersman.storage.encryption.kms.plugin import Plugin, RemotePlugin, Wrapped
from steersman.storage.encryption.metrics import EnvelopeMetrics, TransformationMetrics
from steersman.storage.encryption.transformer import Prefixed, PrefixedTransformers, Transformer

PATH = b"/registry/secrets/default/a"
SIZES = ((1_000, 2_000), (3 << 20, 5))
"""Bytes, and how often."""


def providers() -> dict[str, Transformer]:
    """Return the transformers that a configuration makes, by provider."""
    metrics = TransformationMetrics()

    def keyed(cipher: Transformer) -> Transformer:
        keys = PrefixedTransformers("secrets", [Prefixed(b"key:", cipher)], "", metrics)
        return PrefixedTransformers("secrets", [Prefixed(b"k8s:enc:provider:v1:", keys)], "", metrics)

    current = SeedState()
    current.active_seed, current.expires = ActiveSeed.create(b"k" * 32, Wrapped(b"w" * 60, "key", {})), float("inf")
    plugin: Plugin = object.__new__(RemotePlugin)  # which is not asked
    envelope = EnvelopeTransformer("plugin", plugin, current, EnvelopeMetrics("server"))
    return {
        "identity": PrefixedTransformers("secrets", [Prefixed(b"", Identity())], "", metrics),
        "aesgcm": keyed(AESGCMCipher(b"k" * 32)),
        "aescbc": keyed(AESCBCCipher(b"k" * 32)),
        "secretbox": keyed(SecretboxCipher(b"k" * 32)),
        "kms": PrefixedTransformers("secrets", [Prefixed(b"k8s:enc:kms:v2:plugin:", envelope)], "", metrics),
    }


def microseconds(work: Callable[[], object], times: int) -> float:
    """The best of five."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - began) / times)
    return best * 1e6


def main() -> None:
    for name, transformer in providers().items():
        for size, times in SIZES:
            value = b"v" * size
            sealed = transformer.seal(value, PATH)
            to = microseconds(lambda: transformer.seal(value, PATH), times)  # noqa: B023  # called in this round
            back = microseconds(lambda: transformer.open(sealed, PATH), times)  # noqa: B023  # called in this round
            print(f"{name:10} {size:8,} bytes: {to:8.1f} us to encrypt, {back:8.1f} us to decrypt")


if __name__ == "__main__":
    main()
