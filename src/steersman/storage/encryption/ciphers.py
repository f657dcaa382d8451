"""The ciphers of providers, in the formats of kube-apiserver (apiserver `storage/value/encrypt`)."""

from __future__ import annotations

import hmac
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from steersman.storage.encryption.transformer import Opened, TransformError
from steersman.storage.interface import SEALED

_BLOCK: Final = 16
_GCM_NONCE: Final = 12
_BOX_NONCE: Final = 24
_BOX_TAG: Final = 16
SEED_SIZE: Final = 32
"""The bytes of a seed, and of the random data with which a key is derived from it."""
_TOO_SHORT: Final = "the stored data was shorter than the required size"
_FORGED: Final = "cipher: message authentication failed"


class Identity:
    """A cipher that leaves values unencrypted."""

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return the value unchanged."""
        return value

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the stored bytes. Raises TransformError if they are encrypted."""
        if stored.startswith(SEALED):
            raise TransformError("identity transformer tried to read encrypted data")
        return Opened(stored, False)


class AESCBCCipher:
    """AES in CBC mode with PKCS#7 padding: IV, then blocks. It does not detect changes of the stored data."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = AES(key)

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return a random IV and the padded, encrypted value. The path is not authenticated."""
        iv = os.urandom(_BLOCK)
        padding = _BLOCK - len(value) % _BLOCK
        work = Cipher(self._algorithm, CBC(iv)).encryptor()
        return iv + work.update(value + bytes((padding,)) * padding) + work.finalize()

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the value. Raises TransformError for a wrong length or padding."""
        if len(stored) < _BLOCK:
            raise TransformError(_TOO_SHORT)
        if len(stored) % _BLOCK:
            raise TransformError("the stored data is not a multiple of the block size")
        work = Cipher(self._algorithm, CBC(stored[:_BLOCK])).decryptor()
        padded = work.update(stored[_BLOCK:]) + work.finalize()
        padding = padded[-1] if padded else 0
        if not 0 < padding <= len(padded):
            raise TransformError("invalid PKCS7 data (empty or not padded)")
        if not padded.endswith(bytes((padding,)) * padding):
            raise TransformError("invalid padding on input")
        return Opened(padded[:-padding], False)


class AESGCMCipher:
    """AES in GCM mode: nonce, then ciphertext and tag, with the path as associated data."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return a random nonce and the encrypted value, authenticated together with the path."""
        nonce = os.urandom(_GCM_NONCE)
        return nonce + self._aead.encrypt(nonce, value, path)

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the value. Raises TransformError for bytes that were altered, or are too short."""
        if len(stored) < _GCM_NONCE:
            raise TransformError(_TOO_SHORT)
        try:
            return Opened(self._aead.decrypt(stored[:_GCM_NONCE], stored[_GCM_NONCE:], path), False)
        except InvalidTag:
            raise TransformError(_FORGED) from None


class DerivedGCMCipher:
    """AES-GCM with a separate key for each value, derived by HKDF's expansion (RFC 5869) from a seed and random bytes,
    which come first.
    """

    def __init__(self, seed: bytes) -> None:
        """Raises TransformError if the seed is too short."""
        if len(seed) < SEED_SIZE:
            raise TransformError(f"invalid seed length {len(seed)} used for key generation")
        self._seed = seed

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return a random seed of a key, and the value encrypted with the derived key."""
        info = os.urandom(SEED_SIZE)
        return info + self._derived(info).seal(value, path)

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the value, by the key derived from the leading bytes. Raises TransformError as AESGCMCipher does."""
        if len(stored) < SEED_SIZE:
            raise TransformError(_TOO_SHORT)
        return self._derived(stored[:SEED_SIZE]).open(stored[SEED_SIZE:], path)

    def _derived(self, info: bytes) -> AESGCMCipher:
        # the first block of the expansion has the length of a key
        return AESGCMCipher(hmac.digest(self._seed, info + b"\x01", "sha256"))


class SecretboxCipher:
    """XSalsa20 and Poly1305 in the format of NaCl's secretbox: nonce, tag, ciphertext."""

    def __init__(self, key: bytes) -> None:
        from nacl.secret import SecretBox  # which most servers never need

        self._box = SecretBox(key)

    def seal(self, value: bytes, path: bytes) -> bytes:
        """Return a random nonce and the encrypted, authenticated value. The path is not authenticated."""
        return bytes(self._box.encrypt(value, os.urandom(_BOX_NONCE)))

    def open(self, stored: bytes, path: bytes) -> Opened:
        """Return the value. Raises TransformError for bytes that were altered, or are too short."""
        from nacl.exceptions import CryptoError

        if len(stored) < _BOX_NONCE + _BOX_TAG:
            raise TransformError(_TOO_SHORT)
        try:
            return Opened(self._box.decrypt(stored[_BOX_NONCE:], stored[:_BOX_NONCE]), False)
        except CryptoError:
            raise TransformError("output array was not large enough for encryption") from None
