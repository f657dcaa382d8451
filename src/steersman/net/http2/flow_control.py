"""Flow control of received bytes on an HTTP/2 connection (RFC 9113 section 5.2)."""

from __future__ import annotations

from typing import Final


class ReceiveWindow:
    """The receive window of a stream, or of a connection as a whole.

    Read bytes are announced in WINDOW_UPDATE frames of at least `step` bytes.
    """

    __slots__ = ("_step", "left", "unannounced")

    def __init__(self, size: int, step: int) -> None:
        self.left = size
        """Bytes that the other side may still send. The receiver of bytes subtracts them."""
        self.unannounced = 0
        """Bytes that have been read but not announced by WINDOW_UPDATE."""
        self._step = step

    def give_back(self, size: int) -> int:
        """Count `size` bytes that have been read; return the increment to announce now, or 0."""
        self.unannounced += size
        if self.unannounced < self._step:
            return 0
        increment, self.unannounced = self.unannounced, 0
        self.left += increment
        return increment


CLOSED_WINDOW: Final = ReceiveWindow(0, 1)
"""The window of all streams without a body."""
