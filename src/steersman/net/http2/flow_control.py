"""Flow control of what the other side of an HTTP/2 connection sends (RFC 9113 section 5.2)."""

from __future__ import annotations

from typing import Final


class ReceiveWindow:
    """Window of a stream, or of a connection as a whole.

    Bytes that have been read are announced together, once there are `step` of them.
    """

    __slots__ = ("_step", "left", "unannounced")

    def __init__(self, size: int, step: int) -> None:
        self.left = size
        """Bytes that the other side may still send: who takes some counts them off."""
        self.unannounced = 0
        """Bytes that have been read and that no WINDOW_UPDATE has announced."""
        self._step = step

    def give_back(self, size: int) -> int:
        """Count `size` bytes that have been read; return the increment to announce now, 0 for none."""
        self.unannounced += size
        if self.unannounced < self._step:
            return 0
        increment, self.unannounced = self.unannounced, 0
        self.left += increment
        return increment


CLOSED_WINDOW: Final = ReceiveWindow(0, 1)
"""Window of every stream that carries no body."""
