"""A KMS plugin as it is called: `v2.KeyManagementService` over its Unix socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from steersman.net import protobuf_fields as proto
from steersman.net.client.grpc import CallError
from steersman.net.client.unix_rpc import UnixChannel
from steersman.storage.encryption.metrics import EnvelopeMetrics
from steersman.storage.encryption.transformer import TransformError

_LONGEST: Final = 1024
"""Characters of what a plugin says of itself, which is logged and told by health checks."""


@dataclass(frozen=True, slots=True)
class Status:
    """What a plugin says of itself: `healthz` is "ok" if all is well, `key_id` names the key that it wraps with."""

    version: str
    healthz: str
    key_id: str


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A seed as a plugin has wrapped it."""

    ciphertext: bytes
    key_id: str
    annotations: Mapping[str, bytes]


T = TypeVar("T")


class Plugin(Protocol):
    """What can be asked of a plugin. All raise TransformError, within the time that the configuration gives."""

    async def status(self) -> Status:
        """Whether it is well, and its key."""
        ...

    async def encrypt(self, plaintext: bytes, uid: str) -> Wrapped:
        """Wraps a seed; `uid` names the request in logs."""
        ...

    async def decrypt(self, wrapped: Wrapped, uid: str) -> bytes:
        """The seed that was wrapped."""
        ...

    async def close(self) -> None:
        """Ends the connection."""
        ...


class RemotePlugin:
    """The plugin behind a socket. To be made on the loop; `timeout` in seconds is for each call."""

    def __init__(self, name: str, socket: str, timeout: float, metrics: EnvelopeMetrics) -> None:
        self._timeout = timeout
        self._channel = UnixChannel(
            socket, lambda method, code, seconds: metrics.latency.observe(seconds, (name, method, code))
        )

    async def status(self) -> Status:
        fields = await self._call("Status", b"")
        version, healthz, key_id = _read(lambda: [proto.text_of(fields, number) for number in (1, 2, 3)])
        return Status(version[:_LONGEST], healthz[:_LONGEST], key_id)

    async def encrypt(self, plaintext: bytes, uid: str) -> Wrapped:
        fields = await self._call("Encrypt", proto.encode([(1, plaintext), (2, uid)]))
        return _read(lambda: Wrapped(proto.bytes_of(fields, 1), proto.text_of(fields, 2), proto.map_of(fields, 3)))

    async def decrypt(self, wrapped: Wrapped, uid: str) -> bytes:
        request = proto.encode(
            [(1, wrapped.ciphertext), (2, uid), (3, wrapped.key_id), *proto.encode_map(4, wrapped.annotations)]
        )
        fields = await self._call("Decrypt", request)
        return _read(lambda: proto.bytes_of(fields, 1))

    async def _call(self, method: str, message: bytes) -> dict[int, list[proto.Value]]:
        try:
            answer = await self._channel.call(f"/v2.KeyManagementService/{method}", message, timeout=self._timeout)
        except CallError as error:
            raise TransformError(str(error), error.code.text) from None
        return _read(lambda: proto.decode(answer))

    async def close(self) -> None:
        await self._channel.close()


def _read(read: Callable[[], T]) -> T:
    """Raises TransformError for what is no answer."""
    try:
        return read()
    except proto.FieldsError as error:
        why = f"grpc: failed to unmarshal the received message: {error}"
        raise TransformError(f"rpc error: code = Internal desc = {why}", "Internal") from None
