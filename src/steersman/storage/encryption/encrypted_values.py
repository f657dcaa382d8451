"""The encrypted values of a resource."""

from __future__ import annotations

import logging
from typing import Final

from steersman.storage.encryption.transformer import NeedsKey, Opened, Transformer, TransformError
from steersman.storage.interface import KeyValue, Unreadable, Unwritable
from steersman.storage.keys import check_write
from steersman.work.offloading import offload_if

logger = logging.getLogger(__name__)

_LARGE: Final = 1 << 20
"""The bytes from which on a value is encrypted and decrypted in a worker thread."""
_KEYS_TRIED: Final = 3


class EncryptedValues:
    """A `storage.mapped.ValueMap` with the transformer of one resource."""

    seals = True
    writes_as_given = False

    def __init__(self, transformer: Transformer) -> None:
        self._transformer = transformer

    def is_value(self, stored: bytes) -> bool:
        """Return False, as every stored value passes through the transformer."""
        return False

    def takes_long(self, stored: bytes) -> bool:
        """Return True for bytes that are large to decrypt."""
        return len(stored) >= _LARGE

    def value_now(self, item: KeyValue) -> bytes | None:
        """Return the decrypted value, None if its key must be fetched first. Raises Unreadable."""
        try:
            return self._transformer.open(item.value, item.key.encode()).value
        except NeedsKey:
            return None
        except TransformError as error:
            raise Unreadable(item.key, str(error)) from error

    async def value(self, item: KeyValue) -> bytes:
        """Return the decrypted value, after fetching its key if necessary. Raises Unreadable."""
        return (await self._open(item)).value

    async def stored(self, key: str, value: bytes) -> bytes:
        """Return the encrypted value. Raises Unwritable, and ValueError for an invalid key or value."""
        check_write(key, value)
        seal = self._transformer.seal
        try:
            path = key.encode()
            return await offload_if(True, seal, value, path) if self.takes_long(value) else seal(value, path)
        except TransformError as error:
            logger.error("a value of %s cannot be encrypted: %s", key, error)
            raise Unwritable(str(error)) from error

    async def is_stale(self, item: KeyValue) -> bool:
        """Return True if the value was not encrypted with the present provider and key. Raises Unreadable."""
        return (await self._open(item)).is_stale

    async def _open(self, item: KeyValue) -> Opened:
        """Decrypt a value, whose key may have to be fetched. Raises Unreadable."""
        stored, path = item.value, item.key.encode()
        decrypt, is_large = self._transformer.open, self.takes_long(stored)
        try:
            for _ in range(_KEYS_TRIED):
                try:
                    return await offload_if(True, decrypt, stored, path) if is_large else decrypt(stored, path)
                except NeedsKey as missing:
                    await missing.fetch()
        except TransformError as error:
            raise Unreadable(item.key, str(error)) from error
        raise Unreadable(item.key, "its key was evicted as soon as it was fetched")
