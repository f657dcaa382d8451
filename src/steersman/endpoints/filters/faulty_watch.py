"""An open watch with faults: its events come later or not at all, or it ends early."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.faults.fault import Fault
from steersman.faults.intercepted_watch import LENGTH, MOST_HELD, InterceptedWatch, events_of
from steersman.faults.interception import OpenWatch
from steersman.machinery.errors.status import expired
from steersman.net.message import BodyWriter

_BOOKMARKS: Final = (b'{"type":"BOOKMARK"', b"\n\x08BOOKMARK")
"""Beginnings of bookmarks in JSON, and in protobuf after the length."""
_INITIAL_END: Final = b"k8s.io/initial-events-end"
"""Annotation of the bookmark that a client waits for at its start."""
_TOO_OLD: Final = "too old resource version"


class FaultyWatch(InterceptedWatch):
    """Body of a watch that passes on the events of another one as a fault has it."""

    def __init__(self, fault: Fault, inner: OpenWatch) -> None:
        super().__init__(inner)
        self._fault = fault
        self._effect = fault.spec.effect.watch
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._timers: set[asyncio.TimerHandle] = set()
        self._left = self._effect.close_after_events
        """Events until the watch is closed; None for any number."""
        self._closing = False
        self._ended = False
        """True if the watch has ended, and held events are still to be sent."""

    # The connection's side

    def start(self, writer: BodyWriter) -> None:
        """Begin with the initial events."""
        if self._effect.hold:
            self._fault.on_end(self._release)
        if self._fault.close_after is not None:
            self._later(self._fault.close_after, self._close)
        super().start(writer)
        if self._left == 0:
            self._close()

    def closed(self) -> None:
        """Release everything at the end of the answer."""
        for each in self._timers:
            each.cancel()
        self._timers.clear()
        self._fault.forget(self._release)
        self._held.clear()
        super().closed()

    # The side of the watch

    def write(self, data: bytes) -> None:
        """Pass on events, or keep them for later."""
        if self._writer is None:
            return
        if self._closing:
            self._writer.write(data)
            return
        for event in events_of(data):
            if self._left == 0:
                break
            if self._effect.withhold_bookmarks and _is_bookmark(event):
                continue
            if self._left is not None:
                self._left -= 1
            self._pass_on(event)
        if self._left == 0:
            asyncio.get_running_loop().call_soon(self._close)  # not amid the initial events

    def end(self) -> None:
        """End the watch after the events that are held back."""
        if self._held and not self._closing:
            self._ended = True
        else:
            super().end()

    # Faults

    def _pass_on(self, event: bytes) -> None:
        writer = self._writer
        assert writer is not None
        holds = self._effect.hold and not self._fault.is_over
        if not holds and not self._fault.watch_delay:
            writer.write(event)
            return
        self._held.append(event)
        self._held_bytes += len(event)
        if self._held_bytes > MOST_HELD:
            writer.abort()
        elif not holds:
            self._later(self._fault.watch_delay, self._send_first)

    def _send_first(self) -> None:
        """Send the event that has waited longest."""
        if self._writer is None or not self._held:
            return
        event = self._held.popleft()
        self._held_bytes -= len(event)
        self._writer.write(event)
        if self._ended and not self._held:
            self._writer.end()

    def _release(self) -> None:
        """Send all events that were held back, as the fault has ended."""
        while self._held and self._writer is not None:
            self._send_first()

    def _close(self) -> None:
        """End the watch, with an error if the fault says so."""
        if self._closing or self._writer is None:
            return
        self._closing = True
        if self._effect.expire:
            self._inner.failed(expired(_TOO_OLD))
        else:
            self._inner.finish()

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        handle: asyncio.TimerHandle

        def due() -> None:
            self._timers.discard(handle)
            what()

        handle = asyncio.get_running_loop().call_later(seconds, due)
        self._timers.add(handle)


def _is_bookmark(event: bytes) -> bool:
    """Return True for a bookmark other than the one at the end of the initial events."""
    is_one = event.startswith(_BOOKMARKS[0]) or event[LENGTH:].startswith(_BOOKMARKS[1])
    return is_one and _INITIAL_END not in event
