"""The client of a KMS plugin: `v2.KeyManagementService` over a Unix socket."""

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
"""The most characters of a plugin's texts, which are logged and shown by health checks."""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a plugin. `healthz` is "ok" if it is healthy, `key_id` is the ID of the key with which it wraps."""

    version: str
    healthz: str
    key_id: str


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A seed that was wrapped by a plugin."""

    ciphertext: bytes
    key_id: str
    annotations: Mapping[str, bytes]


T = TypeVar("T")


class Plugin(Protocol):
    """The methods of a plugin. All raise TransformError, within the configured timeout."""

    async def status(self) -> Status:
        """Return the health of the plugin and its key ID."""
        ...

    async def encrypt(self, plaintext: bytes, uid: str) -> Wrapped:
        """Wrap a seed. `uid` identifies the request in logs."""
        ...

    async def decrypt(self, wrapped: Wrapped, uid: str) -> bytes:
        """Unwrap a seed."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class RemotePlugin:
    """The plugin behind a socket. It must be created on the event loop. `timeout` is in seconds, for each call."""

    def __init__(self, name: str, socket: str, timeout: float, metrics: EnvelopeMetrics) -> None:
        self._timeout = timeout
        self._channel = UnixChannel(
            socket, lambda method, code, seconds: metrics.latency.observe(seconds, (name, method, code))
        )

    async def status(self) -> Status:
        """Call `Status`; long texts are cut."""
        fields = await self._call("Status", b"")
        version, healthz, key_id = _read(lambda: [proto.text_of(fields, number) for number in (1, 2, 3)])
        return Status(version[:_LONGEST], healthz[:_LONGEST], key_id)

    async def encrypt(self, plaintext: bytes, uid: str) -> Wrapped:
        """Call `Encrypt`."""
        fields = await self._call("Encrypt", proto.encode([(1, plaintext), (2, uid)]))
        return _read(lambda: Wrapped(proto.bytes_of(fields, 1), proto.text_of(fields, 2), proto.map_of(fields, 3)))

    async def decrypt(self, wrapped: Wrapped, uid: str) -> bytes:
        """Call `Decrypt`."""
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
        """Close the channel to the socket."""
        await self._channel.close()


def _read(read: Callable[[], T]) -> T:
    """Call `read`. Raises TransformError if the answer is invalid."""
    try:
        return read()
    except proto.FieldsError as error:
        why = f"grpc: failed to unmarshal the received message: {error}"
        raise TransformError(f"rpc error: code = Internal desc = {why}", "Internal") from None
