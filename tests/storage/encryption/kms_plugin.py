"""A KMS v2 plugin for tests, on a Unix socket: it wraps with its own keys, and fails, waits and lies when told to.

`python -m tests.storage.encryption.kms_plugin SOCKET` serves until it is ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from hashlib import sha256

import grpc
import grpc.aio
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from steersman.net import protobuf_fields as proto


class KMSPlugin:
    """A plugin, to be started and stopped on the loop."""

    def __init__(self, socket: str, *, service: str = "v2.KeyManagementService") -> None:
        self.socket = socket
        self.key_id = "key-1"
        self.encrypt_key_id = ""
        """The id that Encrypt names, if it is another."""
        self.healthz = "ok"
        self.version = "v2"
        self.annotations = {"version.encryption.example.com": b"1"}
        self.ciphertext: bytes | None = None
        """What Encrypt gives instead of what it should."""
        self.delay = 0.0
        self.failure: grpc.StatusCode | None = None
        self.calls: list[str] = []
        self._service = service
        self._server: grpc.aio.Server | None = None

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    async def start(self) -> KMSPlugin:
        self._server = grpc.aio.server()
        methods = {"Status": self._status, "Encrypt": self._encrypt, "Decrypt": self._decrypt}
        handlers = {name: grpc.unary_unary_rpc_method_handler(self._method(name, do)) for name, do in methods.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self._service, handlers),))
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()
        return self

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def _method(
        self, name: str, do: Callable[[dict[int, list[proto.Value]]], bytes]
    ) -> Callable[[bytes, grpc.aio.ServicerContext[bytes, bytes]], Awaitable[bytes]]:
        async def answer(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            self.calls.append(name)
            await asyncio.sleep(self.delay)
            if self.failure is not None:
                await context.abort(self.failure, "the plugin was told to fail")
            return do(proto.decode(request))

        return answer

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
        return proto.encode([(1, plain)])


def _key(key_id: str) -> AESGCM:
    return AESGCM(sha256(key_id.encode()).digest())


async def _serve(socket: str) -> None:
    await KMSPlugin(socket).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
