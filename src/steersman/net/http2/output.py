"""The sending half of an HTTP/2 server connection: one joined write per event loop iteration, streams in round
robin.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from steersman.net.connection import BATCH, Core, Receiver
from steersman.net.http2 import frames
from steersman.net.http2.flow_control import ReceiveWindow
from steersman.net.http2.receiving import Receiving
from steersman.net.http2.stream import Http2Stream

_MAX_CONTROL_WHILE_BLOCKED: Final = 1 << 20


class Http2Output(Receiver, Receiving[Http2Stream]):
    """Writer of frames: `out` collects the output, and bytes that cannot be sent yet wait in their streams."""

    __slots__ = ("_blocked_bytes", "_stalled", "leaving", "ready")

    largest_frame = BATCH

    def __init__(self, core: Core) -> None:
        limits = core.limits
        window = ReceiveWindow(limits.connection_window, limits.connection_window // 2)
        Receiver.__init__(self, core)
        Receiving.__init__(self, core.loop.time, window, limits.max_header_list_bytes)
        self.ready: deque[Http2Stream] = deque()
        self._stalled: list[Http2Stream] = []
        """Streams that wait for the connection's window."""
        self.leaving: dict[Http2Stream, float] = {}
        """Streams with a complete response that has not been sent completely, with the time since when."""
        self._blocked_bytes = 0

    def half_closed(self, stream: Http2Stream) -> None:
        """End a stream whose END_STREAM has been queued."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        """Stop writing: the transport's buffer is full."""
        self.blocked = True

    def resume_writing(self) -> None:
        """Resume writing: the transport's buffer has drained."""
        self.blocked = False
        self._blocked_bytes = 0
        if self.ready or self._unsent:
            self.schedule()

    def _write_out(self) -> None:
        out = self.out
        if self.ready and not self.blocked:
            self._fill(out)
        if out and self.blocked:
            out[:] = [b"".join(out)]
            self._blocked_bytes += len(out[0])
            if self._blocked_bytes > _MAX_CONTROL_WHILE_BLOCKED:
                self._transport.abort()
                return
        if out or self._unsent:
            self._send(out)
        if self.ready and not self.blocked:
            self.schedule()

    def _fill(self, out: list[bytes]) -> None:
        """Append one frame of each ready stream in turn, up to a batch in all."""
        ready = self.ready
        budget = BATCH
        while ready and budget > 0:
            stream = ready.popleft()
            if stream.closed:
                continue
            if not stream.sendable(self.window):
                stream.parked = True
                if stream.window > 0:
                    self._stalled.append(stream)
                continue
            size = stream.append_frame(out, self.window, self.max_frame)
            self.window -= size
            budget -= size + frames.HEADER_LENGTH
            if not stream.drained:
                ready.append(stream)
            else:
                stream.queued = False
                if stream.ended:
                    self.half_closed(stream)
            stream.wake_writers()

    def widened(self, stream: Http2Stream | None) -> None:
        """Return a stream to the round, as its window has opened; with None, all that wait for the connection's
        window.
        """
        if stream is None:
            if self._stalled:
                stalled, self._stalled = self._stalled, []
                for each in stalled:
                    each.parked = False
                self.ready.extend(stalled)
        elif stream.parked and stream not in self._stalled:
            stream.parked = False
            self.ready.append(stream)
