"""Calls to an etcd cluster over any member that answers."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from steersman.machinery.go.urls import redacted_url
from steersman.net.client import grpc
from steersman.net.client.answer import BadAnswer
from steersman.net.client.dial import DialError, dial, dial_unix, errors_as_go, host_port
from steersman.net.client.grpc import CallError, Code, Stream
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.client.http2.health import Health
from steersman.net.http2 import hpack
from steersman.net.upgrade import UpgradedConnection
from steersman.storage.etcd import messages
from steersman.storage.etcd.messages import MessageError
from steersman.storage.interface import StorageUnavailable, ValueRefused
from steersman.tracing.trace import Value, add_event, call_span, current_recorder, outgoing
from steersman.work.backoff import Backoff
from steersman.work.single_flight import SingleFlight

logger = logging.getLogger(__name__)

_TOO_LARGE: Final = ("request is too large", "message larger than max")
"""Texts in the details of calls that etcd refuses because of their content."""
_HEALTH: Final = Health(read_idle=30.0, ping_timeout=10.0, confirms_resets=False)
"""The health checks of a connection, with the intervals of kube-apiserver's client."""
_DIAL_SECONDS: Final = 20.0
_DIAL_SECONDS_OF_SEVERAL: Final = 3.0
"""The timeout of a connection attempt if other members can be used instead."""
QUIET: Final = 3.0
"""The seconds without data from a member that owes answers, after which it gets a request that it answers on its own.
"""
SILENT: Final = 3.0
"""The timeout of that request. It is needed because etcd does not let its clients send PING often enough."""
_TOO_LONG: Final = 10.0
"""The seconds without data after which a member is given up if it accepts no more requests."""
_QUESTION: Final = messages.range_of(b"\0", count_only=True, serializable=True)
_ROUNDS: Final = 3
"""The attempts with each member for a call that may be repeated."""
_OTHER_CLUSTER: Final = (
    "%s is of cluster %x, the others are of %x; if the cluster was restored, start this server again"
)
_NO_WORD: Final = "the member of etcd does not answer"
_BACKOFF: Final = Backoff(0.05, jitter=1.0)
_PORT: Final = 2379
_SIZE: Final = "rpc.message.uncompressed_size"
_LEADER: Final = {"hasleader": "true"}
"""Metadata with which a member ends a call if it loses its leader, so that the call can continue elsewhere."""


def _message_event(kind: str, message: bytes) -> dict[str, Value]:
    """Return the attributes of the event of a message, as otelgrpc has them."""
    size = len(message)
    return {"rpc.message.type": kind, "rpc.message.id": 1, "rpc.message.compressed_size": size, _SIZE: size}


class Endpoint:
    """The address of a member: `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT` or `unix:PATH`.

    Raises ValueError for other text.
    """

    def __init__(self, text: str) -> None:
        self.path = ""
        url = urlsplit(text if "://" in text or text.startswith("unix:") else f"http://{text}")
        user, at, _ = url.netloc.rpartition("@")
        self.text = text.replace(user + at, "", 1)  # etcd does not use a password in URLs, and it must not be shown
        if url.scheme in ("unix", "unixs"):
            self.path = url.netloc + url.path
            self.secure = url.scheme == "unixs"
            self.host, self.port, self.authority = "localhost", 0, "localhost"
            return
        if url.scheme not in ("http", "https") or not url.hostname or url.path not in ("", "/"):
            raise ValueError(f"not the URL of an etcd member: {redacted_url(text)}")
        self.secure = url.scheme == "https"
        self.host, self.port = url.hostname, url.port or _PORT
        self.authority = host_port(self.host, self.port)

    async def connect(self, tls: ssl.SSLContext | None) -> UpgradedConnection:
        """Connect to the member. Raises DialError."""
        context = tls if self.secure else None
        if not self.path:
            return await dial(self.host, self.port, context)
        protocol = await dial_unix(self.path)
        if context is not None:
            with errors_as_go(f"unix {self.path}", self.host):
                await protocol.begin_tls(context, self.host)
        assert protocol.connection is not None
        return protocol.connection


@dataclass(slots=True)
class Identity:
    """The ID of the cluster, known from the first member that has answered; 0 before that."""

    cluster: int = 0


class Members:
    """A client that uses one member at a time, over one connection, and the next member if that one fails.

    A member of another cluster than `identity`'s is not used.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], tls: ssl.SSLContext | None = None, identity: Identity | None = None
    ) -> None:
        self._identity = identity or Identity()
        self.endpoints = list(endpoints)
        """The members in the order in which they are tried."""
        random.shuffle(self.endpoints)  # spreads several servers over the members
        self._tls = tls
        self.at = 0
        """Index of the member in use, or that was used last."""
        self._endpoint = self.endpoints[0]
        """The endpoint of the connection."""
        self.connection: Http2Connection | None = None
        """Connection in use."""
        self._dialing: SingleFlight[str, Http2Connection] = SingleFlight()
        self._heads: dict[tuple[str, str], bytes] = {}
        self.dial_seconds = _DIAL_SECONDS if len(self.endpoints) == 1 else _DIAL_SECONDS_OF_SEVERAL
        """Timeout of a connection attempt."""
        self._listening: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def call(self, method: str, message: bytes, *, repeatable: bool) -> bytes:
        """Call a method and return its answer. A call that is not `repeatable` is only repeated if it had no effect.

        Raises the last CallError, with code UNAVAILABLE if no member can be reached.
        """
        connection = self.connection
        attempts = _ROUNDS * len(self.endpoints)
        failures = 0
        while True:
            attempts -= 1
            try:
                if connection is None or not connection.has_capacity:
                    connection = await self._connected()
                if current_recorder() is not None:
                    return await self._call_in_span(connection, method, message)
                return await grpc.call(connection, self._head(method), message)
            except CallError as error:
                if error.code is Code.UNAVAILABLE and connection is not None and connection is self.connection:
                    self._drop_connection()
                if not attempts or not (error.is_unsent or (repeatable and error.code is Code.UNAVAILABLE)):
                    raise
            connection = self.connection
            if failures:
                await asyncio.sleep(_BACKOFF.wait(failures - 1))
            failures += 1

    async def _call_in_span(self, connection: Http2Connection, method: str, message: bytes) -> bytes:
        """Call a method with the trace context of the request, and return its answer. Raises CallError."""
        member = self._endpoint
        about: dict[str, Value] = {"server.address": member.host, "server.port": member.port}
        with call_span(method.removeprefix("/"), **about) as opened:
            fields = b"".join([hpack.field(name, value) for name, value in outgoing()])
            add_event("message", **_message_event("SENT", message))
            answer = await grpc.call(connection, self._head(method) + fields, message)
            add_event("message", **_message_event("RECEIVED", answer))
            if opened is not None:
                opened.set("rpc.response.status_code", "OK")
            return answer

    async def stream(
        self, method: str, on_message: Callable[[bytes], None], on_end: Callable[[CallError | None], None]
    ) -> Stream:
        """Start a bidirectional stream to a member that has a leader. Raises CallError."""
        for others in reversed(range(len(self.endpoints))):
            try:
                connection = await self._connected()
                break
            except CallError as error:
                if not (others and error.is_unsent):
                    raise
        try:
            return Stream(connection, self._head(method, _LEADER), on_message, on_end)
        except CallError:
            self._drop_connection()
            raise

    def report_failure(self) -> None:
        """Report a fault of the member, so that another one is used next. Does nothing if the connection was already
        dropped.
        """
        if self.connection is not None:
            self._drop_connection()

    def _head(self, method: str, metadata: Mapping[str, str] | None = None) -> bytes:
        return self._head_to(self._endpoint, method, metadata)

    def _head_to(self, endpoint: Endpoint, method: str, metadata: Mapping[str, str] | None = None) -> bytes:
        key = endpoint.text, method
        block = self._heads.get(key)
        if block is None:
            block = self._heads[key] = grpc.head(endpoint.authority, method, secure=endpoint.secure, metadata=metadata)
        return block

    def _drop_connection(self) -> None:
        """Stop using a faulty member. Its calls in progress may end."""
        connection, self.connection = self.connection, None
        self._select_next()
        if connection is not None:
            connection.shut_down()

    def _select_next(self) -> None:
        self.at = (self.at + 1) % len(self.endpoints)

    async def _connected(self) -> Http2Connection:
        """Return a connection that accepts calls. Raises CallError."""
        while (connection := self.connection) is not None:
            if connection.has_capacity:
                return connection
            if connection.is_over or connection.is_leaving:
                break
            await connection.wait_for_capacity()
        if self._is_closed:
            raise CallError(Code.UNAVAILABLE, "the store is closed", is_unsent=True)
        return await self._dialing.do("dial", self._dial)

    async def _dial(self) -> Http2Connection:
        endpoint = self.endpoints[self.at]
        try:
            async with asyncio.timeout(self.dial_seconds):
                dialed = await endpoint.connect(self._tls)
            connection = self._http2(dialed)
        except (DialError, TimeoutError, ConnectionResetError) as error:
            self._select_next()
            why = str(error) or "i/o timeout"
            raise CallError(
                Code.UNAVAILABLE, f'connection error: desc = "transport: Error while dialing: {why}"', is_unsent=True
            ) from None
        head = self._head_to(endpoint, messages.RANGE)
        try:
            await self._check(connection, endpoint, head)
        except BaseException:
            connection.close()
            self._select_next()
            raise
        self.connection, self._endpoint = connection, endpoint
        listening = asyncio.get_running_loop().create_task(_check_liveness(connection, head))
        self._listening.add(listening)
        listening.add_done_callback(self._listening.discard)
        return connection

    async def _check(self, connection: Http2Connection, endpoint: Endpoint, head: bytes) -> None:
        """Check that a member answers and belongs to the cluster. Raises CallError if not."""
        try:
            async with asyncio.timeout(SILENT):
                cluster = messages.read_cluster(await grpc.call(connection, head, _QUESTION))
        except TimeoutError:
            raise CallError(Code.UNAVAILABLE, _NO_WORD, is_unsent=True) from None
        except MessageError as error:
            raise CallError(Code.UNAVAILABLE, str(error), is_unsent=True) from error
        except CallError as error:
            if error.code is Code.UNAVAILABLE:
                raise CallError(error.code, error.details, is_unsent=True) from error
            return  # the user may lack the permission; the next call reports it
        identity = self._identity
        if identity.cluster and cluster != identity.cluster:
            logger.error(_OTHER_CLUSTER, endpoint.text, cluster, identity.cluster)
            raise CallError(Code.UNAVAILABLE, f"{endpoint.text} is a member of another cluster", is_unsent=True)
        identity.cluster = cluster

    def _http2(self, dialed: UpgradedConnection) -> Http2Connection:
        """Return an HTTP/2 connection. Raises ConnectionResetError if the peer has closed the connection in the
        meantime.
        """
        try:
            return Http2Connection(dialed, self._connection_ended, health=_HEALTH)
        except ConnectionResetError:
            dialed.hang_up()
            raise

    def _connection_ended(self, connection: Http2Connection) -> None:
        if self.connection is connection:
            self.connection = None
            self._select_next()

    def close(self) -> None:
        """End all calls and close the connection."""
        self._is_closed = True
        self._dialing.cancel()
        for task in self._listening:
            task.cancel()
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


async def _check_liveness(connection: Http2Connection, head: bytes) -> None:
    """End a connection whose member owes answers and no longer sends anything, long before PING would detect that."""
    time = asyncio.get_running_loop().time
    while not connection.is_over:
        quiet = time() - connection.last_read
        if not connection.streams or quiet < QUIET:
            await asyncio.sleep(QUIET if quiet >= QUIET else QUIET - quiet)
        elif not connection.has_capacity:
            if quiet >= _TOO_LONG:
                connection.end(BadAnswer(_NO_WORD))
            await asyncio.sleep(QUIET)
        else:
            try:
                async with asyncio.timeout(SILENT):
                    await grpc.call(connection, head, _QUESTION)
            except TimeoutError:
                connection.end(BadAnswer(_NO_WORD))
            except CallError:
                await asyncio.sleep(QUIET)  # it has answered, or accepts no more requests at the moment


def endpoints(texts: Sequence[str]) -> list[Endpoint]:
    """Parse the addresses of members. Raises ValueError."""
    return [Endpoint(text) for text in texts]


def unavailable(error: CallError) -> StorageUnavailable:
    """Convert the error of a read, or of a write without effect, to the storage error."""
    is_of_value = any(each in error.details for each in _TOO_LARGE)
    return (ValueRefused if is_of_value else StorageUnavailable)(error.details)
