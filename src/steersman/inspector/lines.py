"""Responses of the API server that consist of lines, such as watches, as batches of whole lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

MAX_LINE: Final = 16 << 20
"""Longest line in bytes."""


class LineTooLong(Exception):
    """A line of a response is longer than MAX_LINE."""


async def batches_of_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the lines that have arrived, as soon as at least one is complete. Raises LineTooLong."""
    rest: list[bytes] = []
    size = 0
    async for piece in pieces:
        end = piece.rfind(b"\n")
        if end < 0:
            rest.append(piece)
            size += len(piece)
            if size > MAX_LINE:
                raise LineTooLong
            continue
        whole = b"".join((*rest, piece[:end]))
        rest, size = [piece[end + 1 :]], len(piece) - end - 1
        if lines := [line for line in whole.split(b"\n") if line]:
            yield lines
    if last := b"".join(rest):
        yield [last]
