"""A KMS v2 plugin for tests on a Unix socket, with its own keys. It can be told to fail, to wait and to return wrong
answers.

`python -m tests.storage.encryption.kms_plugin SOCKET` serves until it is ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from hashlib import sha256

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from steersman.net import protobuf_fields as proto
from tests.unix_rpc_server import UnixRPCServer


class KMSPlugin(UnixRPCServer):
    """See the module."""

    def __init__(self, socket: str) -> None:
        methods = {"Status": self._status, "Encrypt": self._encrypt, "Decrypt": self._decrypt}
        super().__init__(socket, "v2.KeyManagementService", methods)
        self.key_id = "key-1"
        self.encrypt_key_id = ""
        """The id that Encrypt names, if it is another."""
        self.healthz = "ok"
        self.version = "v2"
        self.annotations = {"version.encryption.example.com": b"1"}
        self.ciphertext: bytes | None = None
        """The result of Encrypt that replaces the correct one."""
        self.seed: bytes | None = None
        """The result of Decrypt that replaces the correct one."""

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    def _status(self, request: dict[int, list[proto.Value]]) -> bytes:
        return proto.encode([(1, self.version), (2, self.healthz), (3, self.key_id)])

    def _encrypt(self, request: dict[int, list[proto.Value]]) -> bytes:
        key_id = self.encrypt_key_id or self.key_id
        nonce = os.urandom(12)
        wrapped = nonce + _key(key_id).encrypt(nonce, proto.bytes_of(request, 1), None)
        if self.ciphertext is not None:
            wrapped = self.ciphertext
        return proto.encode([(1, wrapped), (2, key_id), *proto.encode_map(3, self.annotations)])

    def _decrypt(self, request: dict[int, list[proto.Value]]) -> bytes:
        wrapped = proto.bytes_of(request, 1)
        plain = _key(proto.text_of(request, 3)).decrypt(wrapped[:12], wrapped[12:], None)
        return proto.encode([(1, plain if self.seed is None else self.seed)])


def _key(key_id: str) -> AESGCM:
    return AESGCM(sha256(key_id.encode()).digest())


async def _serve(socket: str) -> None:
    await KMSPlugin(socket).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
