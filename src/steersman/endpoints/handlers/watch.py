"""WATCH: a stream of events, written to the connection as they happen.

A watch has no task once its initial objects are sent: the cache calls `deliver`, which writes encoded bytes shared by
all watchers of the event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from steersman.api.meta.v1 import ObjectMeta, PartialObjectMetadata
from steersman.endpoints.lists import slices_of
from steersman.endpoints.negotiation import PROTOBUF, Representation, negotiate
from steersman.endpoints.objects import check_form, partial_body, partial_object
from steersman.endpoints.options import list_options
from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, pretty_wanted, protobuf_document
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import WATCH
from steersman.endpoints.table import include_object, table_of
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import encode, encode_in_order
from steersman.machinery.errors.status import CAUSE_RESOURCE_VERSION_TOO_LARGE, StatusError, method_not_supported
from steersman.machinery.large_work.sizes import is_large
from steersman.net.message import BodyAborted, BodyWriter, Response, Upgraded
from steersman.net.websocket.streams import handshake, is_websocket_request, serve_stream
from steersman.rest.capabilities import Item, ListOptions, WatchEvent, WatchStart
from steersman.tracing.trace import in_step
from steersman.work import upkeep
from steersman.work.offloading import bound, current, offload_if
from steersman.work.single_flight import Flight

logger = logging.getLogger(__name__)

_EVENT_SIZE: Final = 500
"""Estimated bytes of an event besides its object."""
BUFFER_LIMIT: Final = 8 * 1024 * 1024
"""Unsent bytes above which a slow watcher's watch is aborted; the client resumes from its last version."""
MUCH_UNREAD: Final = 1 << 20
"""Unsent bytes allowed without a time limit."""
_LONG_UNREAD: Final = 30.0
"""Seconds within which a client with more unsent bytes must receive some."""
SLICE: Final = 64
SLICE_BYTES: Final = 64 << 10
SEAT_SECONDS: Final = 1.0
"""Seconds of waiting for a slow client during the initial objects, after which the watch releases its seat."""
BOOKMARK_EVERY: Final = 60.0
BOOKMARK_BEFORE_END: Final = 2.0
_STREAM_TYPE: Final = ("content-type", protobuf.STREAM_MEDIA_TYPE)
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}


async def watch(scope: Scope, request: Request) -> Response:
    """Answer with events until the timeout, the client's departure, or too large a backlog."""
    accept = request.headers.get("accept", "")
    wanted = negotiate(
        accept, tables=True, partial=True, stream=True, pretty=pretty_wanted(request), offers_stream=True
    )
    watcher = scope.watcher
    if watcher is None:
        raise method_not_supported(scope.group_resource, "watch")
    check_form(scope, wanted)
    options = await list_options(scope, request)
    including = include_object(request) if wanted.as_kind == "Table" else ""
    seconds = options.timeout_seconds
    if seconds is None or seconds == 0:
        seconds = scope.shared.min_request_timeout * (1.0 + random.random())  # type: ignore[assignment]
    kind = TableWatchStream if wanted.as_kind == "Table" else WatchStream
    labels = scope.shared.metrics.labels(request.info, dry_run=False)
    initialized = request.initialized
    stream = kind(scope, options, wanted, including, float(seconds or 0), labels, initialized)
    try:
        stream.begin(await in_step(WATCH, watcher.watch(request.context(), options, stream)))
    except StatusError as error:
        if not _is_told_in_stream(error):
            raise
        stream.refuse(error)
    if is_websocket_request(request.headers) and request.http.version != "2":
        return _over_websocket(request, stream, wanted)
    return Response(200, [_STREAM_TYPE if wanted.media == PROTOBUF else JSON_TYPE], stream)


def _is_told_in_stream(error: StatusError) -> bool:
    """Return True for errors of a watch's resourceVersion, which clients expect as the first event of the stream."""
    return error.code == 410 or any(cause.reason == CAUSE_RESOURCE_VERSION_TOO_LARGE for cause in error.causes)


def _over_websocket(request: Request, stream: WatchStream, wanted: Representation) -> Response:
    """Answer with the same events as WebSocket messages: JSON as text, protobuf as binary without length prefixes."""
    response = handshake(request.headers)
    if response.status != 101:
        stream.closed()
        return response
    binary = protobuf.unframe if wanted.media == PROTOBUF else None

    async def take_over(connection: Upgraded) -> None:
        await serve_stream(connection, stream, binary)

    response.upgrade = take_over
    return response


class WatchStream:
    """The open answer of one watch (net.Stream), and the receiver of the cache's events (rest.Sink)."""

    def __init__(
        self,
        scope: Scope,
        options: ListOptions,
        wanted: Representation,
        including: str,
        seconds: float,
        labels: tuple[str, ...],
        initialized: Callable[[], None] | None = None,
    ) -> None:
        """`initialized` is called when the initial objects are sent."""
        self._scope = scope
        self._account = current()
        self._initialized = initialized
        self._wanted = wanted
        self._including = including
        self._seconds = seconds
        self._bookmarks = options.allow_watch_bookmarks
        self._initial_bookmark = options.send_initial_events
        self._key: tuple[str, ...] = (scope.api_version, wanted.media, wanted.as_kind, wanted.as_version, including)
        self._writer: BodyWriter | None = None
        self._start: WatchStart | None = None
        self._waiting: list[WatchEvent] | None = []
        self._waiting_size = 0
        self._fell_behind = False
        """True if the backlog grew too large before the answer was open."""
        self._refused: StatusError | None = None
        self._open = asyncio.Event()
        """Set once the answer's body is open, or over."""
        self._timers: list[asyncio.TimerHandle] = []
        self._written = 0
        """Bytes of events written so far."""
        self._is_behind = False
        """True while a timer checks whether the client reads."""
        self._filler: asyncio.Task[None] | None = None
        self._counted = (scope.group, scope.version, scope.resource.plural)
        self._events = scope.shared.metrics.watch_events
        self._running = scope.shared.metrics.long_running
        self._labels = labels[:1] + labels[2:]

    # Calls of the handler

    def begin(self, start: WatchStart) -> None:
        """Store the start of the watch until the answer's body is open."""
        self._start = start

    def refuse(self, error: StatusError) -> None:
        """Make the error the only event of the watch."""
        self._refused = error

    # Calls of the connection

    def start(self, writer: BodyWriter) -> None:
        """Send the initial objects, then the events since. Called once the answer's headers are sent."""
        self._writer = writer
        self._open.set()
        if self._refused is not None:
            self._end_with(self._refused)
            return
        if self._seconds < 0 or self._fell_behind or self._scope.shared.stopping():
            # The server may have begun its shutdown, and ended all watches, after this one was accepted.
            writer.end()
            return
        assert self._start is not None
        self._scope.shared.watches.add(self)
        self._running.inc(self._labels)
        loop = asyncio.get_running_loop()
        self._timers.append(upkeep.call_later(loop, self._seconds, self.finish))
        initial = self._start.initial or ()
        many = len(initial) > SLICE or sum([len(item.body) for item in initial]) > SLICE_BYTES
        if many or any(map(self._is_long, initial)):
            self._filler = loop.create_task(self._fill(initial))
            return
        self._send_initial(initial)
        self._live()

    def closed(self) -> None:
        """Release everything at the end of the answer."""
        self._open.set()
        if self in self._scope.shared.watches:
            self._scope.shared.watches.discard(self)
            self._running.inc(self._labels, -1)
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._filler is not None:
            self._filler.cancel()
        if self._start is not None:
            self._start.handle.cancel()
        # The senders of events and this object refer to each other; without this the cycle would need the garbage
        # collector.
        self._writer = self._start = self._initialized = self._refused = None

    def finish(self) -> None:
        """End the watch regularly: its time is up, or the server is shutting down."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._waiting = None
            if self._filler is not None:
                self._filler.cancel()
            writer.end()

    def _is_over(self) -> bool:
        return self._writer is None

    async def _fill(self, initial: Sequence[Item]) -> None:
        """Send many objects in slices with backpressure; events wait meanwhile."""
        writer = self._writer
        assert writer is not None
        try:
            for some in slices_of(initial, SLICE_BYTES):
                if any(map(self._is_long, some)):
                    encoded = await self._account.offload_if(True, self._encoded, some)
                    if self._is_over():
                        return
                    self._write_initial(encoded)
                else:
                    self._send_initial(some)
                await self._wait_until_received(writer)
            self._live()
        except BodyAborted:
            return
        except (asyncio.CancelledError, Exception) as error:
            self._broken_off(error)

    async def _wait_until_received(self, writer: BodyWriter) -> None:
        """Wait until the client has received the written bytes. Raises BodyAborted.

        A slow client's watch releases its seat, as it costs nothing while it waits and others need the seat.
        """
        if self._initialized is None:
            await writer.drain()
            return
        slow = asyncio.get_running_loop().call_later(SEAT_SECONDS, self._give_seat_back)
        try:
            await writer.drain()
        finally:
            slow.cancel()

    def _give_seat_back(self) -> None:
        initialized, self._initialized = self._initialized, None
        if initialized is not None:
            initialized()

    def _broken_off(self, error: BaseException) -> None:
        """Log the failure of a task of this watch; if the worker threads have stopped, end the watch as at shutdown."""
        if isinstance(error, asyncio.CancelledError) or (
            isinstance(error, RuntimeError) and self._scope.shared.stopping()
        ):
            self.finish()
            return
        logger.error("a watch of %s failed", self._scope.group_resource, exc_info=error)
        if self._writer is not None:
            self._writer.abort()

    def _is_long(self, item: Item) -> bool:
        """Return True if encoding an object would block the event loop for long; stored JSON is only joined."""
        wanted = self._wanted
        is_stored = not wanted.as_kind and wanted.media != PROTOBUF and self._scope.other is None
        if is_stored:
            return False
        return self._scope.resource.columns_take_long or len(item.body) > SLICE_BYTES or is_large(item.body)

    def _send_initial(self, items: Sequence[Item]) -> None:
        self._write_initial(self._encoded(items))

    def _encoded(self, items: Sequence[Item]) -> list[bytes]:
        return [self.encode_event("ADDED", item) for item in items]

    def _write_initial(self, encoded: list[bytes]) -> None:
        writer = self._writer
        assert writer is not None
        for data in encoded:
            writer.write(data)
        self._events.inc(self._counted, len(encoded))

    def _live(self) -> None:
        """Send the waiting events, and pass on further events directly: the initial objects are sent."""
        if self._is_over():
            return
        assert self._start is not None
        if self._start.initial is not None and self._bookmarks and self._initial_bookmark:
            self._send_bookmark(self._start.revision, _INITIAL_END)
        self._give_seat_back()
        waiting, self._waiting = self._waiting or [], None
        for event in waiting:
            self.deliver(event)
        if self._is_over():
            return  # the backlog was too large
        if self._bookmarks:
            loop = asyncio.get_running_loop()
            if self._seconds > BOOKMARK_BEFORE_END:
                self._timers.append(upkeep.call_later(loop, self._seconds - BOOKMARK_BEFORE_END, self._last_bookmark))
            self._bookmark_later(BOOKMARK_EVERY * random.uniform(0.9, 1.1))

    # Calls of the cache

    def deliver(self, event: WatchEvent) -> None:
        """Write an event, in bytes that are encoded once for all watchers of the same form."""
        if self._waiting is not None:
            self._wait(event)
            return
        writer = self._writer
        if writer is None:
            return
        known = event.representations
        if known is None:
            known = event.representations = {}
        data = known.get(self._key)
        if type(data) is not bytes:
            if self._is_long(event.entry):
                self._waiting, self._waiting_size = [], 0
                self._wait(event)
                self._filler = asyncio.get_running_loop().create_task(self._catch_up())
                return
            known[self._key] = data = self.encode_event(event.type, event.entry)
        self._write(data)

    def _write(self, data: bytes) -> None:
        writer = self._writer
        assert writer is not None
        writer.write(data)
        self._events.inc(self._counted)
        self._written += len(data)
        if writer.buffered > MUCH_UNREAD and not self._is_behind:
            self._check_later(writer)
        if writer.buffered > BUFFER_LIMIT:
            writer.abort()

    def _check_later(self, writer: BodyWriter) -> None:
        self._is_behind = True
        sent = self._written - writer.buffered
        self._timers.append(asyncio.get_running_loop().call_later(_LONG_UNREAD, self._abort_if_stuck, sent))

    def _abort_if_stuck(self, taken_before: int) -> None:
        """Abort a watch with many unsent bytes of which the client has received none: they keep old objects in
        memory.
        """
        writer = self._writer
        self._is_behind = False
        if writer is None or writer.buffered <= MUCH_UNREAD:
            return
        if self._written - writer.buffered <= taken_before:
            writer.abort()
        else:
            self._check_later(writer)

    async def _catch_up(self) -> None:
        """Send the waiting events, of which some take long to encode; new events queue behind them, so that order is
        kept.
        """
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                self._waiting_size = 0
                for event in waiting:
                    data = await self._encoded_once(event)
                    if self._is_over():
                        return
                    self._write(data)
            self._waiting = None
        except (asyncio.CancelledError, Exception) as error:
            self._broken_off(error)

    async def _encoded_once(self, event: WatchEvent) -> bytes:
        """Return an event's bytes, encoded by the first watcher that needs them for all others."""
        known = event.representations
        if known is None:
            known = event.representations = {}
        data: bytes | Flight[bytes] | None = known.get(self._key)
        if isinstance(data, bytes):
            return data
        if data is None or data.is_over:
            # the account of a watch, whose server owns the threads; the caller's account may be another's
            with bound(self._account):
                known[self._key] = data = Flight(partial(self._encode_beside, event, known, self._key))
        return await data

    async def _encode_beside(self, event: WatchEvent, known: dict[Any, Any], key: tuple[str, ...]) -> bytes:
        known[key] = data = await offload_if(True, self.encode_event, event.type, event.entry)
        return data

    def _wait(self, event: WatchEvent) -> None:
        """Queue an event until the initial objects are sent; too large a backlog aborts the watch.

        Events may arrive before the answer is open, while the initial objects are being collected.
        """
        assert self._waiting is not None
        self._waiting.append(event)
        self._waiting_size += _EVENT_SIZE + len(event.entry.body)
        if self._waiting_size > BUFFER_LIMIT:
            self._waiting = None
            if self._writer is None:
                self._fell_behind = True
            else:
                self._writer.abort()

    async def drain(self) -> None:
        """Wait until the answer is open and the client is not behind, so that a replay does not exceed the limits."""
        await self._open.wait()
        if self._filler is not None and not self._filler.done():
            await asyncio.wait((self._filler,))
        if self._writer is not None:
            with contextlib.suppress(BodyAborted):  # the end of the answer ends the watch
                await self._writer.drain()

    def failed(self, error: StatusError | None) -> None:
        """End the watch, which has ended on the side of the cache; with an error, send it as the last event.

        Clients get an error only if they must not resume from their last version.
        """
        if self._writer is None:
            return
        if error is None:
            self._writer.end()
        else:
            self._end_with(error)

    def _end_with(self, error: StatusError) -> None:
        writer = self._writer
        assert writer is not None
        status = encode_in_order(error.status())
        if self._wanted.media == PROTOBUF:
            writer.write(protobuf.frame(b"ERROR", protobuf_document(status)))
        else:
            writer.write(b'{"type":"ERROR","object":' + status + b"}\n")
        writer.end()

    def encode_event(self, type_: str, item: Item) -> bytes:
        """Return a watch event in the form that the client accepts."""
        scope, wanted = self._scope, self._wanted
        if wanted.media == PROTOBUF:
            return protobuf.frame(type_.encode(), self._document(item))
        if not wanted.as_kind:
            return b'{"type":"%b","object":%b%b}\n' % (type_.encode(), scope.prefix, scope.body(item))
        if wanted.as_kind == "Table":
            table = self._table(item)
            return b'{"type":"%b","object":%b}\n' % (type_.encode(), encode_in_order(table))
        head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",' % wanted.as_version.encode()
        return b'{"type":"%b","object":%b%b}\n' % (type_.encode(), head, partial_body(scope, item))

    def _table(self, item: Item) -> dict[str, Any]:
        return table_of(self._scope, [item], self._wanted, self._including, revision=str(item.revision))

    def _document(self, item: Item) -> bytes:
        scope, wanted = self._scope, self._wanted
        if not wanted.as_kind:
            return protobuf.envelope(scope.protobuf(item), scope.gvk)
        return protobuf_document(partial_object(scope, item, wanted.as_version))

    def _regular_bookmark(self) -> None:
        self._bookmark()
        loop = asyncio.get_running_loop()
        self._timers = [timer for timer in self._timers if not timer.cancelled() and timer.when() > loop.time()]
        self._bookmark_later(BOOKMARK_EVERY)

    def _bookmark_later(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers.append(upkeep.call_later(loop, seconds, self._regular_bookmark))

    def _last_bookmark(self) -> None:
        """Send a bookmark before the end of the watch, if any object of the resource has changed since its start."""
        if self._start is not None and self._start.last_change() > self._start.revision:
            self._bookmark()

    def _bookmark(self) -> None:
        """Send a bookmark, if the watch has progressed since its start."""
        if self._writer is None or self._start is None or self._waiting is not None:
            return  # the events waiting for their encoding come first
        revision = self._start.current_revision()
        if revision is not None and revision > self._start.revision:
            self._send_bookmark(revision, {})

    def _send_bookmark(self, revision: int, annotations: dict[str, str]) -> None:
        writer, scope, wanted = self._writer, self._scope, self._wanted
        assert writer is not None
        if wanted.as_kind == "Table":
            metadata: dict[str, Any] = {"resourceVersion": str(revision)}
            table = table_of(scope, [], wanted, self._including)
            table["metadata"] = metadata
            table["columnDefinitions"] = None
            table["rows"] = [_bookmark_row(wanted, revision, annotations)]
            writer.write(b'{"type":"BOOKMARK","object":' + encode_in_order(table) + b"}\n")
            return
        head = scope.prefix
        body = scope.bookmark(revision, annotations)
        if wanted.media == PROTOBUF:
            if wanted.as_kind:
                head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",' % wanted.as_version.encode()
                body = encode(PartialObjectMetadata(metadata=_bookmark_metadata(revision, annotations)))[1:]
            writer.write(protobuf.frame(b"BOOKMARK", protobuf_document(head + body)))
            return
        if wanted.as_kind:
            head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",' % wanted.as_version.encode()
            extra = b',"annotations":' + encode_in_order(annotations) if annotations else b""
            body = b'"metadata":{"resourceVersion":"%d"%b}}' % (revision, extra)
        writer.write(b'{"type":"BOOKMARK","object":' + head + body + b"}\n")


class TableWatchStream(WatchStream):
    """A watch whose events are Tables: the first has the columns, the others only rows."""

    _columns_sent = False

    def _write(self, data: bytes) -> None:
        super()._write(data)
        self._send_no_more_columns()

    def _encoded(self, items: Sequence[Item]) -> list[bytes]:
        encoded = []
        for item in items:
            encoded.append(self.encode_event("ADDED", item))
            self._send_no_more_columns()
        return encoded

    def _send_no_more_columns(self) -> None:
        if not self._columns_sent:
            self._columns_sent = True
            self._key = (*self._key, "rows")

    def _table(self, item: Item) -> dict[str, Any]:
        table = super()._table(item)
        if self._columns_sent:
            table["columnDefinitions"] = None
        return table


def _bookmark_metadata(revision: int, annotations: dict[str, str]) -> ObjectMeta:
    return ObjectMeta(resource_version=str(revision), annotations=annotations)


def _bookmark_row(wanted: Representation, revision: int, annotations: dict[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    head = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{wanted.as_version}", "metadata": metadata}
    return {"cells": [], "object": head}
